/** What is left for other sandboxes while one uses all the CPU it can get. */
import { takeTurns, timed } from "../measure.ts";
import { own, type Row, rowOf } from "../rows.ts";
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
      const execute = { name: own, measure: async () => ({ ms: await timed(() => installation.execute(neighbour.id, "true")) }) };
      const executes = await takeTurns([execute], { count: runs, warmUp: 10, signal, onRound: (done) => say(`execute ${done}/${runs}`) });
      const create = { name: own, measure: () => createOnce(installation) };
      const count = Math.max(3, Math.round(runs / 4));
      const creates = await takeTurns([create], { count, warmUp: 1, signal, onRound: (done) => say(`create ${done}/${count}`) });
      return [rowOf(besideExecuteTask, own, executes[own]?.ms ?? []), rowOf(besideCreateTask, own, creates[own]?.ms ?? [])];
    }),
  );
}

async function createOnce(installation: Setting["installation"]): Promise<{ ms: number }> {
  let id = "";
  const ms = await timed(async () => {
    id = await installation.create();
  });
  await installation.delete(id);
  return { ms };
}
