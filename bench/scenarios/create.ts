/** Creating and deleting a sandbox, compared with Podman running the same command line that created the sandbox. */
import type { Installation, Sandbox } from "../installation.ts";
import { type Contender, takeTurns, timed, timedResult } from "../measure.ts";
import { own, type Row, rowOf } from "../rows.ts";
import type { Setting } from "./setting.ts";

export const createTask = "create";
const deleteTask = "delete";
const containerName = "sandgate-bench-peer";
const imageLabel = "sandgate.image=";

type Metric = "create" | "delete";

export async function create({ installation, runs, signal, say }: Setting): Promise<Row[]> {
  const command = await installation.withSandbox((sandbox) => createCommand(installation, sandbox));
  const contenders: Contender<Metric>[] = [{ name: own, measure: () => createAndDelete(installation) }, podman(installation, command)];
  const count = Math.max(3, Math.round(runs / 4));
  const samples = await takeTurns(contenders, { count, warmUp: 2, signal, onRound: (done) => say(`create ${done}/${count}`) });
  const rows = (task: string, metric: Metric, names: readonly string[]): Row[] =>
    contenders.map(({ name }, index) => rowOf(task, names[index] ?? name, samples[name]?.[metric] ?? []));
  return [...rows(createTask, "create", [own, "podman run -d"]), ...rows(deleteTask, "delete", [own, "podman rm -f -t 0"])];
}

export async function createAndDelete(installation: Installation): Promise<Record<Metric, number>> {
  const { ms, result: id } = await timedResult(() => installation.create());
  return { create: ms, delete: await timed(() => installation.delete(id)) };
}

function podman({ agent }: Installation, command: readonly string[]): Contender<Metric> {
  return {
    name: "podman",
    measure: async () => {
      const made = await agent.run(command);
      const removed = await agent.run(["podman", "rm", "-f", "-t", "0", made.stdout.trim()]);
      return { create: made.ms, delete: removed.ms };
    },
  };
}

/**
 * The command line with which Podman created the sandbox's container, for one to compare with that Podman makes from the image by
 * itself. The worker's label is kept, so that the container is found when the installation is removed.
 */
export async function createCommand({ agent }: Installation, { containerId }: Sandbox, name = containerName): Promise<string[]> {
  const { stdout } = await agent.run(["podman", "inspect", "--format", "{{json .Config.CreateCommand}}", containerId]);
  const command = JSON.parse(stdout) as string[];
  const image = command.find((word) => word.startsWith(imageLabel))?.slice(imageLabel.length) ?? "";
  return command.flatMap((word, index) => {
    if (word === "--rootfs") return [];
    if (command[index - 1] === "--rootfs") return [image];
    if (command[index - 1] === "--name") return [name];
    return [word.startsWith("sandgate.sandbox=") ? `sandgate.sandbox=${name}` : word];
  });
}
