/** The gateway alone: an authenticated call that needs no worker, compared with a bare HTTP server. */

import { httpLoad, type LoadResult } from "../http-load.ts";
import type { Installation } from "../installation.ts";
import { type BareServer, startBareServer } from "../peers/peer.ts";
import { compare, own, type Row } from "../rows.ts";
import { percentile } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const listTask = (sandboxes: number): string => `list, ${sandboxes} sandboxes`;
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
  const { headers } = installation.api;
  const contender = (name: string, url: string) => {
    const results: LoadResult[] = [];
    const measure = async () => {
      const result = await httpLoad({ url, headers, durationS: roundS });
      results.push(result);
      return { ms: 1_000 / result.perSecond };
    };
    return { name, results, measure };
  };
  const contenders = [contender(own, installation.api.url + path), contender("bare uWebSockets.js", `http://127.0.0.1:${hello.port}${path}`)] as const;
  const rows = await compare(listTask(size), contenders, roundsOf(setting, listTask(size), { share: 1 / listSizes.length, warmUp: 1 }));
  // Those of the warm-up came first.
  return rows.map((row, index) => ({ ...row, ...summary(contenders[index]?.results.slice(-row.n) ?? []) }));
}

/** Every figure is the median of the rounds, so that one disturbed round has no effect. */
function summary(results: readonly LoadResult[]): Omit<Row, "task" | "contender" | "speed"> {
  const median = (pick: (result: LoadResult) => number): number => percentile(results.map(pick), 0.5);
  return {
    n: results.reduce((sum, { requests }) => sum + requests, 0),
    p50: median(({ p50 }) => p50),
    p95: median(({ p95 }) => p95),
    p99: median(({ p99 }) => p99),
    rate: { value: median(({ perSecond }) => perSecond), unit: "calls/s" },
  };
}

async function checkSize({ api }: Installation, size: number): Promise<void> {
  const { data } = await api.json<{ data: unknown[] }>({ method: "GET", path });
  if (data.length !== size) throw new Error(`the list has ${data.length} sandboxes, not ${size}`);
}
