/** Snapshots, restores and clones of sandboxes with changes of different sizes, compared with `podman commit` and `podman run`. */
import { Installation, type Sandbox, withoutPool } from "../installation.ts";
import { type Contender, takeTurns, timedResult } from "../measure.ts";
import { areTight, own, type Row, rowOf, rowsOf } from "../rows.ts";
import { createCommand, fromNothing } from "./create.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const snapshotSizes = [
  { name: "no changes", MB: 0, share: 0.15 },
  { name: "100 MB", MB: 100, share: 0.25 },
  { name: "1 GB", MB: 1_000, share: 0.6 },
] as const;

/** Measured in a scenario of its own, because writing and copying it takes minutes. */
export const largeSize = { name: "10 GB", MB: 10_000, share: 1 } as const;

interface Size {
  readonly name: string;
  readonly MB: number;
  /** Of the time of its scenario. */
  readonly share: number;
}

/** More than the largest takes, and its copy by Podman, which lies in the same storage. */
const roomy = { resources: { storage: 16 } };
const writeTimeoutS = 300;

export const snapshotTask = (size: string): string => `snapshot, ${size}`;
export const restoreTask = (size: string): string => `restore, ${size}`;
export const cloneTask = (size: string): string => `clone, ${size}`;
export const pauseTask = (size: string): string => `pause, ${size}`;

const peerImage = "localhost/sandgate-bench-peer";

type Metric = "snapshot" | "restore" | "clone" | "pause";

export async function snapshot(setting: Setting): Promise<Row[]> {
  return compareAll(setting, snapshotSizes);
}

export const largeSnapshot = (setting: Setting): Promise<Row[]> => compareAll(setting, [largeSize]);

async function compareAll(setting: Setting, sizes: readonly Size[]): Promise<Row[]> {
  const unprepared = await Installation.start(withoutPool);
  try {
    const rows: Row[] = [];
    for (const size of sizes) rows.push(...(await unprepared.withSandbox((other) => compare(setting, unprepared, other, size), roomy)));
    return rows;
  } finally {
    await unprepared.stop();
  }
}

/** @param other a sandbox of the installation without a pool */
async function compare(setting: Setting, unprepared: Installation, other: Sandbox, { name, MB, share }: Size): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (sandbox) => {
    // Random bytes, which neither a file system nor an archive can compress.
    const change = `head -c ${MB * 1_000_000} /dev/urandom > /root/changes`;
    await installation.execute(sandbox.id, change, writeTimeoutS);
    await unprepared.execute(other.id, change, writeTimeoutS);
    const { agent } = installation;
    const source = (await agent.run(await createCommand(installation, sandbox, "sandgate-bench-source"))).stdout.trim();
    await agent.run(["podman", "exec", source, "sh", "-c", change]);
    const contenders: Contender<Metric>[] = [
      sandgate(own, installation, sandbox),
      sandgate(fromNothing, unprepared, other),
      podman(installation, source, await createCommand(installation, sandbox)),
    ];
    const rounds = roundsOf(setting, snapshotTask(name), { share, warmUp: MB > 100 ? 0 : 1 });
    const { inARow: samples } = await takeTurns(contenders, rounds, (taken) => areTight(taken, ["snapshot", "restore", "clone"]));
    await agent.run(["podman", "rm", "-f", "-t", "0", source]);
    const timings = (name: string, contender: string, metric: Metric) => ({ contender, rounds: samples[name]?.[metric] ?? [] });
    const pair = (task: string, metric: Metric, peer: string): Row[] => {
      const unpreparedToo = metric === "snapshot" ? [] : [timings(fromNothing, fromNothing, metric)];
      return rowsOf(task, [timings(own, own, metric), ...unpreparedToo, timings("podman", peer, metric)]);
    };
    return [
      ...pair(snapshotTask(name), "snapshot", "podman commit"),
      ...pair(restoreTask(name), "restore", "podman run -d"),
      ...pair(cloneTask(name), "clone", "podman commit, run -d"),
      rowOf(pauseTask(name), own, samples[own]?.pause.flat() ?? []),
    ];
  }, roomy);
}

interface Made {
  readonly id: string;
}

function sandgate(name: string, installation: Installation, { id }: Sandbox): Contender<Metric> {
  const { api, stack } = installation;
  const post = <T>(path: string): Promise<T> => api.json<T>({ method: "POST", path, json: {} });
  const drop = (path: string): Promise<unknown> => api.json({ method: "DELETE", path });
  return {
    name,
    measure: async () => {
      const taken = await timedResult(() => post<Made>(`/v1/sandboxes/${id}/snapshot`));
      const restored = await timedResult(() => post<Made>(`/v1/snapshots/${taken.result.id}/restore`));
      const cloned = await timedResult(() => post<{ sandbox: Made; snapshot: Made }>(`/v1/sandboxes/${id}/clone`));
      for (const sandbox of [restored.result, cloned.result.sandbox]) await drop(`/v1/sandboxes/${sandbox.id}/delete`);
      for (const snapshot of [taken.result, cloned.result.snapshot]) await drop(`/v1/snapshots/${snapshot.id}`);
      await installation.settled();
      return { snapshot: taken.ms, restore: restored.ms, clone: cloned.ms, pause: pauseOf(stack.worker.lines, taken.result.id) };
    },
  };
}

/** How long the sandbox was frozen, according to the worker's log. */
function pauseOf(lines: readonly string[], snapshotId: string): number {
  const line = lines.findLast((each) => each.includes('"snapshot_taken"') && each.includes(snapshotId));
  return line ? (JSON.parse(line) as { pause_ms: number }).pause_ms : Number.NaN;
}

/** @param source a container with the same changes as the sandbox */
function podman({ agent }: Installation, source: string, command: readonly string[]): Contender<Metric> {
  const fromPeer = command.map((word, index) => (index === command.length - 2 ? peerImage : word));
  return {
    name: "podman",
    measure: async () => {
      // A rootless container without a cgroup of its own cannot be paused; the copy is the same.
      const committed = await agent.run(["podman", "commit", "--quiet", "--pause=false", source, peerImage]);
      const started = await agent.run(fromPeer);
      await agent.run(["podman", "rm", "-f", "-t", "0", started.stdout.trim()]);
      await agent.run(["podman", "rmi", "--force", peerImage]);
      return { snapshot: committed.ms, restore: started.ms, clone: committed.ms + started.ms, pause: Number.NaN };
    },
  };
}
