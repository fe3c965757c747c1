/** The gateway alone: an authenticated call that needs no worker, compared with a bare HTTP server. */

import { httpLoad, type LoadResult } from "../http-load.ts";
import type { Installation } from "../installation.ts";
import { type BareServer, startBareServer } from "../peers/bare-server.ts";
import { own, type Row } from "../rows.ts";
import { percentile } from "../statistics.ts";
import type { Setting } from "./setting.ts";

export const listTask = (sandboxes: number): string => `list, ${sandboxes} sandboxes`;
export const listSizes = [0, 5] as const;

const path = "/v1/sandboxes/list";
const roundS = 2;
const warmUpS = 1;

export async function list(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  const hello = await startBareServer("hello.ts");
  const ids: string[] = [];
  try {
    const rows: Row[] = [];
    for (const size of listSizes) {
      while (ids.length < size) ids.push(await installation.create());
      rows.push(...(await compare(setting, hello, size)));
    }
    return rows;
  } finally {
    hello.stop();
    for (const id of ids) await installation.delete(id);
  }
}

async function compare({ installation, runs, signal, say }: Setting, hello: BareServer, size: number): Promise<Row[]> {
  await checkSize(installation, size);
  const { headers } = installation.api;
  const contenders = [
    { name: own, url: installation.api.url + path, results: [] as LoadResult[] },
    { name: "bare uWebSockets.js", url: `http://127.0.0.1:${hello.port}${path}`, results: [] as LoadResult[] },
  ];
  for (const { url } of contenders) await httpLoad({ url, headers, durationS: warmUpS });
  const count = Math.max(2, Math.round(runs / 20));
  for (let round = 0; round < count; round++) {
    say(`${listTask(size)} ${round}/${count}`);
    for (const { url, results } of round % 2 ? contenders.toReversed() : contenders) {
      signal.throwIfAborted();
      results.push(await httpLoad({ url, headers, durationS: roundS }));
    }
  }
  return contenders.map(({ name, results }) => summary(listTask(size), name, results));
}

/** Every figure is the median of the rounds, so that one disturbed round has no effect. */
function summary(task: string, contender: string, results: readonly LoadResult[]): Row {
  const median = (pick: (result: LoadResult) => number): number => percentile(results.map(pick), 0.5);
  return {
    task,
    contender,
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
