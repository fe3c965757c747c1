/** The shortest command: the overhead of running anything. */
import { timed, timing } from "../measure.ts";
import { compare, own, type Row } from "../rows.ts";
import type { Setting } from "./setting.ts";

export const executeTask = "execute true";

export async function execute({ installation, runs, signal, say }: Setting): Promise<Row[]> {
  return installation.withSandbox(async (sandbox) => {
    const program = (name: string) => timing(`${name} exec`, () => installation.agent.time([name, "exec", sandbox.containerId, "true"]));
    const contenders = [
      timing(own, () => timed(() => installation.execute(sandbox.id, "true"))),
      program("podman"),
      program(await installation.runtimeOf(sandbox)),
    ];
    return compare(executeTask, contenders, { count: runs, warmUp: 10, signal, onRound: (done) => say(`execute ${done}/${runs}`) });
  });
}
