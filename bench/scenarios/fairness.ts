/** What is left for other sandboxes while one uses all the CPU it can get. */
import { timed, timing } from "../measure.ts";
import { compare, own, type Row } from "../rows.ts";
import { createAndDelete } from "./create.ts";
import type { Setting } from "./setting.ts";

const loops = 200;
export const besideExecuteTask = `execute true beside ${loops} busy loops`;
const besideCreateTask = `create beside ${loops} busy loops`;

/** Each loop runs in its own session: if the CPU is shared between sessions, this takes the most. */
const busy = `for i in $(seq ${loops}); do setsid sh -c 'while :; do :; done' > /dev/null 2>&1 & done`;

export async function fairness({ installation, runs, signal, say }: Setting): Promise<Row[]> {
  return installation.withSandbox((neighbour) =>
    installation.withSandbox(async (greedy) => {
      // The loops go on after the command has ended, until the sandbox is deleted.
      await installation.execute(greedy.id, busy);
      const execute = timing(own, () => timed(() => installation.execute(neighbour.id, "true")));
      const executes = await compare(besideExecuteTask, [execute], { count: runs, warmUp: 10, signal, onRound: (done) => say(`execute ${done}/${runs}`) });
      const create = timing(own, async () => (await createAndDelete(installation)).create);
      const count = Math.max(3, Math.round(runs / 4));
      const creates = await compare(besideCreateTask, [create], { count, warmUp: 1, signal, onRound: (done) => say(`create ${done}/${count}`) });
      return [...executes, ...creates];
    }),
  );
}
