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

/** Calls a second; each sandbox that is created is deleted at once. */
interface Mix {
  readonly lists: number;
  readonly creates: number;
}

const mixed: Mix = { lists: 100, creates: 10 };

const size = `${sandboxCount.toLocaleString("en")} sandboxes of ${workerCount} workers`;
export const largeListTask = `list, ${size}`;
export const largeCreateTask = `create without its container, ${size}`;
const memoryTask = `memory of a gateway, ${size}`;
const beatsTask = `CPU of a gateway, ${workerCount} workers, no calls`;
const cpuTask = `CPU of a gateway, ${mixed.lists} lists, ${mixed.creates} creates and deletes a second, ${size}`;

export const create = (api: HttpClient): Promise<{ id: string }> => api.json({ method: "POST", path: "/v1/sandboxes/create", json: { image: "default" } });

interface Carried {
  readonly lists: readonly number[];
  readonly creates: readonly number[];
  /** What the gateway used, in milliseconds of CPU a second. */
  readonly cpu: number;
}

/**
 * One account has all sandboxes, and reads pages of its list anywhere in it while others of its calls change it. What calls cost
 * where there are few sandboxes, and what the beats of workers cost, is the model that the load on many sandboxes is compared with.
 */
export async function ofMany(setting: Setting, { gateway }: Stack, api: HttpClient): Promise<Row[]> {
  const { budgetMs, signal, say } = setting;
  const carry = (mix: Mix, share: number, sandboxes: number) => carried(setting, { api, pid: gateway.pid, mix, sandboxes, durationMs: budgetMs * share });
  say("what calls cost with few sandboxes");
  await carry(mixed, 0.05, 1);
  const beats = await carry({ lists: 0, creates: 0 }, 0.1, 1);
  const listsOnly = await carry({ ...mixed, creates: 0 }, 0.1, 1);
  const createsOnly = await carry({ ...mixed, lists: 0 }, 0.1, 1);
  const bytesBefore = residentBytes(gateway.pid);
  let begun = 0;
  await inParallel(atOnce, sandboxCount, async () => {
    signal.throwIfAborted();
    if (begun++ % 1_000 === 0) say(`creating ${begun - 1} of ${sandboxCount}`);
    await create(api);
    return 0;
  });
  const MBs = (residentBytes(gateway.pid) - bytesBefore) / MB;
  await pause(settleMs, signal);
  say(`${largeListTask}, beside creates`);
  const all = await carry(mixed, 0.3, sandboxCount);
  const paper = listsOnly.cpu + createsOnly.cpu - beats.cpu;
  const used = (task: string, contender: string, value: number, unit: "MB" | "ms/s"): Row => ({ task, contender, n: 1, ...unknown, use: { value, unit } });
  return [
    rowOf(largeListTask, own, all.lists, { rate: { value: mixed.lists, unit: "calls/s" } }),
    rowOf(largeCreateTask, own, all.creates, { rate: { value: mixed.creates, unit: "calls/s" } }),
    used(beatsTask, own, beats.cpu, "ms/s"),
    used(cpuTask, own, all.cpu, "ms/s"),
    used(cpuTask, "as few sandboxes would make it", paper, "ms/s"),
    used(memoryTask, own, MBs, "MB"),
  ];
}

interface Carrying {
  readonly api: HttpClient;
  readonly pid: number;
  readonly mix: Mix;
  readonly sandboxes: number;
  readonly durationMs: number;
}

async function carried({ random, signal }: Setting, { api, pid, mix, sandboxes, durationMs }: Carrying): Promise<Carried> {
  const removals: Promise<unknown>[] = [];
  const list = () => {
    const page = 1 + Math.floor((random() * sandboxes) / pageSize);
    return api.json({ method: "GET", path: `${listPath}?page=${page}&page_size=${pageSize}` });
  };
  const createAndDelete = async (): Promise<void> => {
    const { id } = await create(api);
    removals.push(api.json({ method: "DELETE", path: `/v1/sandboxes/${id}/delete` }).catch((error: unknown) => error));
  };
  const [usedMs, begunMs] = [cpuMsOf(pid), performance.now()];
  const [lists, creates] = await Promise.all([
    atRate(mix.lists, durationMs, signal, list),
    atRate(mix.creates, durationMs, signal, createAndDelete),
    pause(durationMs, signal),
  ]);
  const failure = (await Promise.all(removals)).find((result) => result instanceof Error);
  if (failure) throw failure;
  return { lists, creates, cpu: ((cpuMsOf(pid) - usedMs) * 1_000) / (performance.now() - begunMs) };
}
