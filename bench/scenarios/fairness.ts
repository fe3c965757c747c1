/** What is left for other sandboxes while one uses all the CPU it can get. */
import { timed, timing } from "../measure.ts";
import { compare, own, type Row } from "../rows.ts";
import { createExecuteDelete } from "./create.ts";
import { roundsOf, type Setting } from "./setting.ts";

const loops = 200;
export const besideExecuteTask = `execute true beside ${loops} busy loops`;
const besideCreateTask = `create beside ${loops} busy loops`;

/** Each loop runs in its own session: if the CPU is shared between sessions, this takes the most. */
const busy = `for i in $(seq ${loops}); do setsid sh -c 'while :; do :; done' > /dev/null 2>&1 & done`;

export async function fairness(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox((neighbour) =>
    installation.withSandbox(async (greedy) => {
      // The loops go on after the command has ended, until the sandbox is deleted.
      await installation.execute(greedy.id, busy);
      const execute = timing(own, () => timed(() => installation.execute(neighbour.id, "true")));
      const executes = await compare(besideExecuteTask, [execute], roundsOf(setting, "execute", { share: 0.6, warmUp: 10, countMin: 50 }));
      const create = timing(own, async () => (await createExecuteDelete(installation)).create);
      const creates = await compare(besideCreateTask, [create], roundsOf(setting, "create", { share: 0.4, warmUp: 1 }));
      return [...executes, ...creates];
    }),
  );
}
