/** The shortest command: the overhead of running anything. */
import { type Contender, takeTurns, timed } from "../measure.ts";
import { own, type Row, rowOf } from "../rows.ts";
import type { Setting } from "./setting.ts";

export const executeTask = "execute true";

export async function execute({ installation, runs, signal, say }: Setting): Promise<Row[]> {
  return installation.withSandbox(async (sandbox) => {
    const runtime = await installation.runtimeOf(sandbox);
    const program = (name: string): Contender<"ms"> => ({
      name: `${name} exec`,
      measure: async () => ({ ms: (await installation.agent.run([name, "exec", sandbox.containerId, "true"])).ms }),
    });
    const contenders: Contender<"ms">[] = [
      { name: own, measure: async () => ({ ms: await timed(() => installation.execute(sandbox.id, "true")) }) },
      program("podman"),
      program(runtime),
    ];
    const samples = await takeTurns(contenders, { count: runs, warmUp: 10, signal, onRound: (done) => say(`execute ${done}/${runs}`) });
    return contenders.map(({ name }) => rowOf(executeTask, name, samples[name]?.ms ?? []));
  });
}
