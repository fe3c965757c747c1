/** HTTP load: by wrk where it is installed, because it leaves more of the machine to the server, else by autocannon. */
import { join } from "node:path";
import autocannon from "autocannon";
import { run, succeeds } from "../systemd/base/run.ts";
import { type Percentiles, percentilesOf } from "./measure.ts";

/** Connections of every load, one request at a time on each. */
const connections = 32;

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole seconds, which is all that wrk takes. */
  readonly durationS: number;
}

export interface LoadResult extends Percentiles {
  readonly requests: number;
  readonly perSecond: number;
}

/** What `wrk-report.lua` prints. */
interface WrkReport extends Percentiles {
  readonly requests: number;
  readonly durationMs: number;
  readonly errors: number;
}

/** Loads a URL with GET requests. @throws {Error} when an answer was no 2xx. */
export type LoadGenerator = (load: Load) => Promise<LoadResult>;

const hasWrk = (): Promise<boolean> => succeeds(["sh", "-c", "command -v wrk"]);

export async function loadGenerator(): Promise<LoadGenerator> {
  return (await hasWrk()) ? withWrk : withAutocannon;
}

export async function loadGeneratorName(): Promise<string> {
  return `${(await hasWrk()) ? "wrk" : "autocannon"}, ${connections} connections`;
}

async function withWrk({ url, headers, durationS }: Load): Promise<LoadResult> {
  const options = ["--threads", "1", "--connections", String(connections), "--duration", `${durationS}s`];
  const headerOptions = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
  const script = ["--script", join(import.meta.dirname, "wrk-report.lua")];
  const output = await run(["wrk", ...options, ...headerOptions, ...script, url], { timeoutMs: (durationS + 30) * 1_000 });
  const { durationMs, errors, ...result } = JSON.parse(output.split("\n").at(-1) ?? "") as WrkReport;
  return checked(url, errors, { ...result, perSecond: (result.requests * 1_000) / durationMs });
}

async function withAutocannon({ url, headers, durationS }: Load): Promise<LoadResult> {
  const latencies: number[] = [];
  // Its own percentiles leave out the 95th and know whole milliseconds only.
  const result = await autocannon({ url, headers, connections, duration: durationS }).on("response", (_client, _status, _bytes, ms) => latencies.push(ms));
  const requests = result.requests.total;
  return checked(url, result.errors + result.non2xx, { requests, perSecond: requests / result.duration, ...percentilesOf(latencies) });
}

function checked(url: string, errors: number, result: LoadResult): LoadResult {
  if (errors > 0) throw new Error(`${errors} of the calls of ${url} failed`);
  return result;
}
