/** The gateway alone: an authenticated call that needs no worker, compared with a bare HTTP server. */

import { httpLoad, type Load, type LoadResult } from "../http-load.ts";
import type { Installation } from "../installation.ts";
import { type BareServer, startBareServer } from "../peers/peer.ts";
import { compare, own, type Row } from "../rows.ts";
import { percentile } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

/** Compared by CPU time: wrk takes a whole CPU as well, and would be the limit of a server that needs less. */
export const listTask = (sandboxes: number): string => `list, ${sandboxes} sandboxes, by CPU time of the server`;
export const steadyTask = (sandboxes: number): string => `list, ${sandboxes} sandboxes, at 70 % of the most`;
const steadyShare = 0.7;
export const listSizes = [0, 5] as const;

const path = "/v1/sandboxes/list";
const roundS = 2;

export async function list(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  const hello = await startBareServer("hello.ts");
  const ids: string[] = [];
  try {
    const rows: Row[] = [];
    for (const size of listSizes) {
      while (ids.length < size) ids.push(await installation.create());
      rows.push(...(await compareSize(setting, hello, size)));
    }
    return rows;
  } finally {
    hello.stop();
    for (const id of ids) await installation.delete(id);
  }
}

async function compareSize(setting: Setting, hello: BareServer, size: number): Promise<Row[]> {
  const { installation } = setting;
  await checkSize(installation, size);
  const { headers, url } = installation.api;
  const contender = (name: string, target: Pick<Load, "url" | "pid">) => {
    const results: LoadResult[] = [];
    const measure = async () => {
      const result = await httpLoad({ ...target, headers, durationS: roundS });
      results.push(result);
      return { ms: 1_000 / result.perCpuSecond };
    };
    return { name, results, measure };
  };
  const gateway = { url: url + path, pid: installation.stack.gateway.pid };
  const contenders = [contender(own, gateway), contender("bare uWebSockets.js", { url: `http://127.0.0.1:${hello.port}${path}`, pid: hello.pid })] as const;
  const rows = await compare(listTask(size), contenders, roundsOf(setting, listTask(size), { share: 0.45, warmUp: 1 }));
  // Those of the warm-up came first.
  const compared = rows.map((row, index) => ({ ...row, ...summary(contenders[index]?.results.slice(-row.n) ?? [], "perCpuSecond") }));
  const most = percentile(
    contenders[0].results.map(({ perSecond }) => perSecond),
    0.5,
  );
  return [...compared, await steady(setting, { ...gateway, headers, durationS: roundS, perSecond: steadyShare * most }, size)];
}

/** A part of the most that the gateway answers: what calls take when there is room for more of them. */
async function steady({ say, budgetMs }: Setting, load: Load, size: number): Promise<Row> {
  const results: LoadResult[] = [];
  const endMs = performance.now() + budgetMs * 0.05;
  do {
    say(steadyTask(size));
    results.push(await httpLoad(load));
  } while (performance.now() < endMs);
  return { task: steadyTask(size), contender: own, ...summary(results, "perSecond") };
}

/** Every figure is the median of the rounds, so that one disturbed round has no effect. */
function summary(results: readonly LoadResult[], rate: "perSecond" | "perCpuSecond"): Omit<Row, "task" | "contender" | "speed"> {
  const median = (pick: (result: LoadResult) => number): number => percentile(results.map(pick), 0.5);
  return {
    n: results.reduce((sum, { requests }) => sum + requests, 0),
    p50: median(({ p50 }) => p50),
    p95: median(({ p95 }) => p95),
    p99: median(({ p99 }) => p99),
    rate: { value: median((result) => result[rate]), unit: "calls/s" },
  };
}

async function checkSize({ api }: Installation, size: number): Promise<void> {
  const { data } = await api.json<{ data: unknown[] }>({ method: "GET", path });
  if (data.length !== size) throw new Error(`the list has ${data.length} sandboxes, not ${size}`);
}
