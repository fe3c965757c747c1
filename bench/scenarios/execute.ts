/** The shortest command: the overhead of running anything. */
import { timed, timing } from "../measure.ts";
import { PodmanApi } from "../peers/podman-api.ts";
import { compare, own, type Row } from "../rows.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const executeTask = "execute true";
/** Some ten calls of Sandgate, two of the program `podman`. */
const turnMs = 100;

export async function execute(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (sandbox) => {
    const program = (name: string, ...command: string[]) =>
      timing(`${name} exec`, () => installation.agent.time([...command, "exec", sandbox.containerId, "true"]));
    const runtime = await installation.runtimeOf(sandbox);
    const api = await PodmanApi.start(installation);
    const contenders = [
      timing(own, () => timed(() => installation.execute(sandbox.id, "true"))),
      program("podman", ...installation.podman),
      program(runtime, await installation.plainRuntime(runtime)),
      timing("podman's API over HTTP", () => timed(() => api.exec(sandbox.containerId, ["true"]))),
    ] as const;
    const rows = await compare(executeTask, contenders, roundsOf(setting, "execute", { share: 1, warmUp: 3, countMin: 10, turnMs }));
    await api.idle();
    return rows;
  });
}
