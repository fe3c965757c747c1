/** Creating and deleting a sandbox, compared with Podman making a container that is isolated like it. */
import { preparedImageId } from "../../test/helpers/prepare.ts";
import { Installation, type Sandbox, type Wanted, withoutPool } from "../installation.ts";
import { type Contender, type Samples, type Taken, takeTurns, timed, timedResult } from "../measure.ts";
import { afterAnother, areTight, own, type Row, rowsOf, type Timings } from "../rows.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const createTask = "create";
export const deleteTask = "delete";
export const deletePeer = "podman rm -f -t 0";
/** Whose installation has no pool. The other one's is given the time to fill before each create: a burst is as fast only while it lasts. */
export const fromNothing = "sandgate, from nothing";
export const firstTask = "create, and its first execute";
/** What ranges of user ids cost is the difference to these, whose sandboxes all have the same ids. */
export const withSharedIds = "user ids shared by all";
export const fromNothingShared = `${fromNothing}, ${withSharedIds}`;
const sharedIds = { SANDGATE_USER_IDS: "shared" };
const podmanName = "podman";
const containerName = "sandgate-bench-peer";

type Metric = "create" | "first" | "delete";

export async function create(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  const command = await installation.withSandbox((sandbox) => createCommand(installation, sandbox));
  const started: Installation[] = [];
  const sandgate = (name: string, measured: Installation): Contender<Metric> => ({ name, measure: () => createExecuteDelete(measured) });
  const other = async (name: string, settings: Readonly<Record<string, string>>): Promise<Contender<Metric>> => {
    const made = await Installation.start(settings);
    started.push(made);
    return sandgate(name, made);
  };
  try {
    const contenders: Contender<Metric>[] = [
      sandgate(own, installation),
      await other(fromNothing, withoutPool),
      await other(withSharedIds, sharedIds),
      await other(fromNothingShared, { ...withoutPool, ...sharedIds }),
      podman(installation, command),
    ];
    const rounds = roundsOf(setting, "create", { share: 1, warmUp: 2, turnMs: 0 });
    return allRows(contenders, await takeTurns(contenders, rounds, (samples) => areTight(samples, ["create", "first", "delete"])));
  } finally {
    for (const made of started) await made.stop();
  }
}

function allRows(contenders: readonly Contender<Metric>[], taken: Taken<Metric>): Row[] {
  const rows = (task: string, samples: Samples<Metric>, metric: Metric, peer: string): Row[] => {
    const timings = contenders.map(({ name }): Timings => ({ contender: name === podmanName ? peer : name, rounds: samples[name]?.[metric] ?? [] }));
    return rowsOf(task, timings as [Timings, ...Timings[]]);
  };
  return [
    ...rows(createTask, taken.inARow, "create", "podman run -d"),
    ...rows(afterAnother(createTask), taken.afterAnother, "create", "podman run -d"),
    ...rows(firstTask, taken.inARow, "first", "podman run -d, exec"),
    ...rows(deleteTask, taken.inARow, "delete", deletePeer),
  ];
}

export async function createExecuteDelete(installation: Installation, wanted?: Wanted): Promise<Record<Metric, number>> {
  const { ms, result: id } = await timedResult(() => installation.create(wanted));
  const first = ms + (await timed(() => installation.execute(id, "true")));
  const deleteMs = await timed(() => installation.delete(id));
  await installation.settled();
  return { create: ms, first, delete: deleteMs };
}

function podman({ agent }: Installation, command: readonly string[]): Contender<Metric> {
  return {
    name: podmanName,
    measure: async () => {
      const made = await agent.run(command);
      const id = made.stdout.trim();
      const executed = await agent.run(["podman", "exec", id, "true"]);
      const removed = await agent.run(["podman", "rm", "-f", "-t", "0", id]);
      return { create: made.ms, first: made.ms + executed.ms, delete: removed.ms };
    },
  };
}

/** What `podman inspect` tells about a container. */
interface Inspected {
  readonly OCIRuntime: string;
  readonly OCIConfigPath: string;
  readonly BoundingCaps: readonly string[];
  readonly Config: {
    readonly Hostname: string;
    readonly Entrypoint: string;
    readonly Cmd: readonly string[] | null;
    readonly Labels: Readonly<Record<string, string>>;
  };
  readonly HostConfig: {
    readonly Binds: readonly string[];
    readonly NetworkMode: string;
    readonly OomScoreAdj: number;
    readonly SecurityOpt: readonly string[];
    readonly Tmpfs: Readonly<Record<string, string>>;
    readonly Ulimits: readonly { readonly Name: string; readonly Soft: number; readonly Hard: number }[];
  };
}

/**
 * Podman's own networks have options that `podman inspect` does not tell; these are the worker's. It tells of none where the worker
 * attaches the same network from outside.
 */
const slirp4netns = "slirp4netns:enable_ipv6=false,allow_host_loopback=false";
const networks: Readonly<Record<string, string>> = {
  none: slirp4netns,
  slirp4netns,
  pasta: "pasta:--ipv4-only,--no-map-gw",
};

/**
 * The command line with which Podman makes a container from the image by itself that is isolated like that of a sandbox. The
 * worker's label is kept, so that the container is found when the installation is removed.
 */
export async function createCommand(installation: Installation, { id, containerId }: Sandbox, name = containerName): Promise<string[]> {
  const { agent } = installation;
  const [inspected] = JSON.parse((await agent.run([...installation.podman, "inspect", containerId])).stdout) as [Inspected];
  const { OCIRuntime, OCIConfigPath, BoundingCaps, Config, HostConfig } = inspected;
  const runtime = await installation.plainRuntime(OCIRuntime);
  const { linux } = JSON.parse((await agent.run(["cat", OCIConfigPath])).stdout) as { linux: { sysctl?: Record<string, string> } };
  const each = (flag: string, values: readonly string[]): string[] => values.flatMap((value) => [flag, value]);
  const pairs = (flag: string, values: Readonly<Record<string, string>>, between = "="): string[] =>
    each(
      flag,
      Object.entries(values).map(([key, value]) => `${key}${between}${value}`),
    );
  return [
    ...["podman", "run", "--detach", "--pull", "never", "--runtime", runtime, "--name", name, "--hostname", Config.Hostname],
    ...["--log-driver", "none", "--restart", "no", "--image-volume", "ignore", "--http-proxy=false", "--systemd", "false", "--no-healthcheck"],
    ...pairs("--label", { ...Config.Labels, "sandgate.sandbox": name }),
    // Without the folder in which the worker meets the sandbox's exec server: it goes with the sandbox.
    ...each(
      "--volume",
      HostConfig.Binds.filter((bind) => !bind.includes(id)),
    ),
    ...pairs("--tmpfs", HostConfig.Tmpfs, ":"),
    ...["--cap-drop", "all", ...each("--cap-add", BoundingCaps), ...each("--security-opt", HostConfig.SecurityOpt)],
    ...each(
      "--ulimit",
      HostConfig.Ulimits.map(({ Name, Soft, Hard }) => `${Name.replace("RLIMIT_", "").toLowerCase()}=${Soft}:${Hard}`),
    ),
    ...["--oom-score-adj", String(HostConfig.OomScoreAdj), ...pairs("--sysctl", linux.sysctl ?? {})],
    ...["--network", networks[HostConfig.NetworkMode] ?? HostConfig.NetworkMode],
    ...["--workdir", "/", "--entrypoint", JSON.stringify([Config.Entrypoint]), (await preparedImageId()) ?? "", ...(Config.Cmd ?? [])],
  ];
}
