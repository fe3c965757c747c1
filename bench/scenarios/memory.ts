/**
 * Snapshots with memory, restores, clones and forks of a process of different sizes, compared with checkpoints by Podman as root. On a
 * machine run by systemd that is made for it, because only services of systemd take memory.
 */

import { until } from "../../test/helpers/until.ts";
import { Client } from "../../test/host/client.ts";
import { bridgeCriu } from "../../test/host/criu.ts";
import { asWorker, podmanDir } from "../../test/host/installed.ts";
import { Machine, volumeDir } from "../../test/host/machine.ts";
import { type Contender, takeTurns, timedResult } from "../measure.ts";
import { areTight, own, type Row, rowOf, rowsOf } from "../rows.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const memorySizes = [
  { name: "10 MB", MB: 10, share: 0.25 },
  { name: "100 MB", MB: 100, share: 0.3 },
  { name: "500 MB", MB: 500, share: 0.45 },
] as const;

/** Copies of one fork. */
const copies = 10;
const peer = "podman as root";
const archive = "/var/tmp/checkpoint.tar";

export const memoryTasks = (size: string) => ({
  snapshot: `snapshot with memory, ${size}`,
  pause: `pause with memory, ${size}`,
  restore: `restore with memory, ${size}`,
  clone: `clone with memory, ${size}`,
  fork: `fork of ${copies}, ${size}`,
});

type Metric = keyof ReturnType<typeof memoryTasks>;

export async function memory(setting: Setting): Promise<Row[]> {
  const machine = await Machine.start("bench");
  try {
    return await measureOn(machine, setting);
  } finally {
    await machine[Symbol.asyncDispose]();
  }
}

async function measureOn(machine: Machine, setting: Setting): Promise<Row[]> {
  setting.say(await bridgeCriu(machine));
  await machine.install([], [`SANDGATE_VOLUME=${volumeDir}`]);
  await machine.shell(`printf %s '${runtimeScript}' > ${runtime} && chmod 755 ${runtime}`);
  const client = new Client((...argv) => machine.run(...argv), "http://127.0.0.1:8080", machine.key);
  const image = (await machine.shell(`cut -d ' ' -f 2 ${podmanDir}/default-image`)).trim();
  await machine.shell(`${asWorker} podman save --quiet ${image} | podman load --quiet`);
  const rows: Row[] = [];
  for (const size of memorySizes) rows.push(...(await compare(setting, machine, client, image, size)));
  return rows;
}

async function compare(setting: Setting, machine: Machine, client: Client, image: string, size: (typeof memorySizes)[number]): Promise<Row[]> {
  const { name, MB, share } = size;
  const { id } = await made(client, "/v1/sandboxes/create", { image: "default", resources: { memory: 2_048, storage: 1 } });
  await client.output(id, `setsid python3 -c "${holding(MB)}" > /dev/null 2>&1 < /dev/null &`);
  const source = (
    await machine.run("podman", "--runtime", runtime, "run", "--detach", "--network=none", "--pids-limit=0", image, "python3", "-c", holding(MB))
  ).trim();
  await until("both programs run", async () => {
    await client.output(id, "test -e /tmp/holds && echo yes").then((text) => text === "yes\n" || Promise.reject(new Error("not yet")));
    return (await machine.run("podman", "exec", source, "ls", "/tmp/holds")).trim() === "/tmp/holds";
  });
  const tasks = memoryTasks(name);
  const contenders: Contender<Metric>[] = [sandgate(machine, client, id), podman(machine, source)];
  const rounds = roundsOf(setting, tasks.snapshot, { share, warmUp: 1 });
  const { inARow: samples } = await takeTurns(contenders, rounds, (taken) => areTight(taken, ["snapshot", "restore", "clone", "fork"]));
  await remove(machine, "sandboxes", [{ id }]);
  await machine.run("podman", "rm", "--force", "--time", "0", source);
  const timings = (contender: string, metric: Metric) => ({ contender, rounds: samples[contender]?.[metric] ?? [] });
  const pair = (metric: Metric): Row[] => rowsOf(tasks[metric], [timings(own, metric), timings(peer, metric)]);
  return [...pair("snapshot"), rowOf(tasks.pause, own, samples[own]?.pause.flat() ?? []), ...pair("restore"), ...pair("clone"), ...pair("fork")];
}

const runtime = "/usr/local/bin/crun-without-groups";
/** Has CRIU leave control groups alone, some of which the machine may only read. Podman cannot pass that on. */
const runtimeScript = `#!/bin/bash
args=()
for each; do args+=("$each"); case $each in checkpoint|restore) args+=(--manage-cgroups-mode=ignore);; esac; done
exec crun "\${args[@]}"
`;

/** A program that holds memory which nothing can compress or share. */
const holding = (MB: number): string => `import os, time; held = bytearray(os.urandom(${MB}_000_000)); open('/tmp/holds', 'w').close(); time.sleep(1e9)`;

interface Made {
  readonly id: string;
}
interface Taken extends Made {
  readonly pause_ms: number;
}

/** @throws {Error} when the call fails */
async function made<T = Made>(client: Client, path: string, body: object): Promise<T> {
  const { error, ...answer } = await client.call<object>(path, body);
  if (error) throw new Error(`${path}: ${error.message}`);
  return answer as T;
}

async function remove(machine: Machine, kind: "sandboxes" | "snapshots", objects: readonly Made[]): Promise<void> {
  const key = (await machine.key()).trim();
  const paths = objects.map(({ id }) => (kind === "sandboxes" ? `/v1/sandboxes/${id}/delete` : `/v1/snapshots/${id}`));
  await Promise.all(paths.map((path) => machine.run("curl", "-sS", "-X", "DELETE", "-H", `x-api-key: ${key}`, `http://127.0.0.1:8080${path}`)));
}

function sandgate(machine: Machine, client: Client, id: string): Contender<Metric> {
  const insisting = { memory: "require" };
  return {
    name: own,
    measure: async () => {
      const taken = await timedResult(() => made<Taken>(client, `/v1/sandboxes/${id}/snapshot`, insisting));
      const restored = await timedResult(() => made(client, `/v1/snapshots/${taken.result.id}/restore`, insisting));
      const cloned = await timedResult(() => made<{ sandbox: Made; snapshot: Made }>(client, `/v1/sandboxes/${id}/clone`, insisting));
      const forked = await timedResult(() => made<{ data: { sandbox: Made }[] }>(client, `/v1/sandboxes/${id}/fork`, { count: copies, ...insisting }));
      const sandboxes = [restored.result, cloned.result.sandbox, ...forked.result.data.map(({ sandbox }) => sandbox)];
      await remove(machine, "sandboxes", sandboxes);
      await remove(machine, "snapshots", [taken.result, cloned.result.snapshot]);
      return { snapshot: taken.ms, pause: taken.result.pause_ms, restore: restored.ms, clone: cloned.ms, fork: forked.ms };
    },
  };
}

/** @param source a container with the same program, which goes on */
function podman(machine: Machine, source: string): Contender<Metric> {
  const take = `podman container checkpoint --leave-running --compress none --export ${archive} ${source}`;
  const restore = (number: number): string => `podman container restore --import ${archive} --name copy-${number}`;
  const names = Array.from({ length: copies }, (_, number) => number);
  return {
    name: peer,
    measure: async () => {
      const taken = await timedResult(() => machine.shell(take));
      const restored = await timedResult(() => machine.shell(restore(0)));
      await machine.run("podman", "rm", "--force", "--time", "0", "copy-0");
      const all = await timedResult(() => machine.shell(`${names.map((number) => `${restore(number)} & `).join("")}wait`));
      await machine.run("podman", "rm", "--force", "--time", "0", ...names.map((number) => `copy-${number}`));
      return { snapshot: taken.ms, pause: Number.NaN, restore: restored.ms, clone: taken.ms + restored.ms, fork: taken.ms + all.ms };
    },
  };
}
