/** HTTP load by wrk: generators in JavaScript use more of the machine than the server that they are to load. */
import { join } from "node:path";
import { run } from "../systemd/base/run.ts";
import type { Percentiles } from "./statistics.ts";

/** Connections of every load, each with one request at a time. */
const connections = 32;

export const loadGeneratorName = `wrk, ${connections} connections`;

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole seconds, because wrk takes nothing else. */
  readonly durationS: number;
}

export interface LoadResult extends Percentiles {
  readonly requests: number;
  readonly perSecond: number;
}

/** The output of `wrk-report.lua`. */
interface WrkReport extends Percentiles {
  readonly requests: number;
  readonly durationMs: number;
  readonly errors: number;
}

/** @throws {Error} if any answer is not 2xx */
export async function httpLoad({ url, headers, durationS }: Load): Promise<LoadResult> {
  const options = ["--threads", "1", "--connections", String(connections), "--duration", `${durationS}s`];
  const headerOptions = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
  const script = ["--script", join(import.meta.dirname, "wrk-report.lua")];
  const output = await run(["wrk", ...options, ...headerOptions, ...script, url], { timeoutMs: (durationS + 30) * 1_000 });
  const { durationMs, errors, ...result } = JSON.parse(output.split("\n").at(-1) ?? "") as WrkReport;
  if (errors > 0) throw new Error(`${errors} of the calls of ${url} failed`);
  return { ...result, perSecond: (result.requests * 1_000) / durationMs };
}
