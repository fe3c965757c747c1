/** The calls of an account with very many sandboxes, on very many workers. */
import { pause } from "../../shared/waiting.ts";
import { residentBytes } from "../../test/helpers/prepare.ts";
import type { Stack } from "../../test/helpers/stack.ts";
import { cpuMsOf } from "../cpu.ts";
import type { HttpClient } from "../http.ts";
import { atRate, inParallel } from "../measure.ts";
import { own, type Row, rowOf } from "../rows.ts";
import { percentilesOf } from "../statistics.ts";
import type { Setting } from "./setting.ts";

export const workerCount = 200;
export const sandboxCount = 20_000;
export const atOnce = 64;
export const listPath = "/v1/sandboxes/list";
const pageSize = 20;
/** By then, what was just made is written and cleaned up. */
export const settleMs = 3_000;
const unknown = percentilesOf([]);
export const MB = 1_000_000;

/** What may be asked for. What is made is deleted at once. */
type Kind = "lists" | "creates" | "snapshots" | "streams";
const kinds: readonly Kind[] = ["lists", "creates", "snapshots", "streams"];

/** Of each kind so many a second. */
type Mix = Readonly<Partial<Record<Kind, number>>>;
const mixed: Readonly<Record<Kind, number>> = { lists: 100, creates: 10, snapshots: 5, streams: 5 };
/** So many that the gateway's code is compiled before anything is measured, as it is once there are very many sandboxes. */
const warming: Mix = { lists: 500, creates: 200, snapshots: 50, streams: 10 };

/** Of each stream, which goes over NATS: the workers are on no machine of a gateway. */
const streamMiB = 4;

const words: Readonly<Record<Kind, string>> = {
  lists: "lists",
  creates: "creates and deletes",
  snapshots: "snapshots, without their bytes, and their deletes",
  streams: `streams of ${streamMiB} MiB`,
};
const describe = (mix: Mix): string =>
  Object.entries(mix)
    .map(([kind, count]) => `${count} ${words[kind as Kind]}`)
    .join(", ");

/** The parts whose CPU is looked at. */
const parts = ["gateway", "NATS"] as const;
type Cpu = Readonly<Record<(typeof parts)[number], number>>;

const size = `${sandboxCount.toLocaleString("en")} sandboxes of ${workerCount} workers`;
export const largeListTask = `list, ${size}`;
export const largeCreateTask = `create without its container, ${size}`;
const memoryTask = `memory of a gateway, ${size}`;
const beatsTask = (part: string): string => `CPU of ${part}, ${workerCount} workers, no calls`;
const cpuTask = (part: string, mix: Mix): string => `CPU of ${part}, ${describe(mix)} a second, ${size}`;

export const create = (api: HttpClient): Promise<{ id: string }> => api.json({ method: "POST", path: "/v1/sandboxes/create", json: { image: "default" } });

interface Carried {
  readonly latencies: Readonly<Record<Kind, readonly number[]>>;
  /** What each part used, in milliseconds of CPU a second. */
  readonly cpu: Cpu;
}

/**
 * One account has all sandboxes, and reads pages of its list anywhere in it while others of its calls change it. What calls of each
 * kind cost where there is one sandbox, and what the beats of workers cost, is the model that the load on many sandboxes is compared with.
 */
export async function ofMany(setting: Setting, { gateway, nats }: Stack, api: HttpClient): Promise<Row[]> {
  const { budgetMs, signal, say } = setting;
  const ids = [(await create(api)).id];
  const carry = (mix: Mix, share: number) => carried(setting, { api, pids: { gateway: gateway.pid, NATS: nats.pid }, mix, ids, durationMs: budgetMs * share });
  say("what calls cost with one sandbox");
  await carry(warming, 0.2);
  const beats = await carry({}, 0.1);
  const alone = new Map<Kind, Cpu>();
  for (const kind of kinds) alone.set(kind, (await carry({ [kind]: mixed[kind] }, 0.1)).cpu);
  const bytesBefore = residentBytes(gateway.pid);
  await inParallel(atOnce, sandboxCount, async () => {
    signal.throwIfAborted();
    if (ids.length % 1_000 === 0) say(`creating ${ids.length} of ${sandboxCount}`);
    ids.push((await create(api)).id);
    return 0;
  });
  const MBs = (residentBytes(gateway.pid) - bytesBefore) / MB;
  await pause(settleMs, signal);
  const rows: Row[] = [];
  for (const kind of kinds) {
    say(`${size}: ${words[kind]}`);
    const mix = { [kind]: mixed[kind] };
    rows.push(...besidePaper(mix, (await carry(mix, 0.1)).cpu, alone, beats.cpu));
  }
  say(`${size}: all of these together`);
  const all = await carry(mixed, 0.15);
  say(`${largeListTask}, beside creates`);
  const small = { lists: mixed.lists, creates: mixed.creates };
  // The slowest hundredth of its creates is judged, so there must be several of them.
  const { latencies, cpu } = await carry(small, 1);
  return [
    rowOf(largeListTask, own, latencies.lists, { rate: { value: mixed.lists, unit: "calls/s" } }),
    rowOf(largeCreateTask, own, latencies.creates, { rate: { value: mixed.creates, unit: "calls/s" } }),
    ...parts.map((part) => used(beatsTask(part), own, beats.cpu[part], "ms/s")),
    ...rows,
    ...besidePaper(small, cpu, alone, beats.cpu),
    ...besidePaper(mixed, all.cpu, alone, beats.cpu),
    used(memoryTask, own, MBs, "MB"),
  ];
}

const used = (task: string, contender: string, value: number, unit: "MB" | "ms/s"): Row => ({ task, contender, n: 1, ...unknown, use: { value, unit } });

/** What a load took of each part, and what the model says: the beats, and for each kind of call what it took alone beyond them. */
function besidePaper(mix: Mix, measured: Cpu, alone: ReadonlyMap<Kind, Cpu>, beats: Cpu): Row[] {
  return parts.flatMap((part) => {
    const paper = Object.keys(mix).reduce((sum, kind) => sum + (alone.get(kind as Kind)?.[part] ?? 0) - beats[part], beats[part]);
    const task = cpuTask(part, mix);
    return [used(task, own, measured[part], "ms/s"), used(task, "as one sandbox would make it", paper, "ms/s")];
  });
}

interface Carrying {
  readonly api: HttpClient;
  readonly pids: Readonly<Record<keyof Cpu, number>>;
  readonly mix: Mix;
  /** Of all sandboxes. */
  readonly ids: readonly string[];
  readonly durationMs: number;
}

async function carried({ random, signal }: Setting, { api, pids, mix, ids, durationMs }: Carrying): Promise<Carried> {
  const removals: Promise<unknown>[] = [];
  const remove = (path: string) => removals.push(api.json({ method: "DELETE", path }).catch((error: unknown) => error));
  const anyPlace = (): number => Math.floor(random() * ids.length);
  const anySandbox = (): string => `/v1/sandboxes/${ids[anyPlace()]}`;
  const calls: Readonly<Record<Kind, () => Promise<unknown>>> = {
    lists: () => api.json({ method: "GET", path: `${listPath}?page=${1 + Math.floor(anyPlace() / pageSize)}&page_size=${pageSize}` }),
    creates: async () => remove(`/v1/sandboxes/${(await create(api)).id}/delete`),
    snapshots: async () => remove(`/v1/snapshots/${(await api.json<{ id: string }>({ method: "POST", path: `${anySandbox()}/snapshot`, json: {} })).id}`),
    streams: async () => {
      for await (const _ of await api.open({ method: "GET", path: `${anySandbox()}/download?path=/${streamMiB * 1_048_576}` }));
    },
  };
  const cpu = (): Cpu => ({ gateway: cpuMsOf(pids.gateway), NATS: cpuMsOf(pids.NATS) });
  const [before, begunMs] = [cpu(), performance.now()];
  const [timed] = await Promise.all([
    Promise.all(kinds.map(async (kind) => [kind, await atRate(mix[kind] ?? 0, durationMs, signal, calls[kind])] as const)),
    pause(durationMs, signal),
  ]);
  const failure = (await Promise.all(removals)).find((result) => result instanceof Error);
  if (failure) throw failure;
  const [after, seconds] = [cpu(), (performance.now() - begunMs) / 1_000];
  const perSecond = (part: keyof Cpu): number => (after[part] - before[part]) / seconds;
  return { latencies: Object.fromEntries(timed) as unknown as Carried["latencies"], cpu: { gateway: perSecond("gateway"), NATS: perSecond("NATS") } };
}
