/** HTTP load by wrk: generators in JavaScript use more of the machine than the server that they are to load. */
import { join } from "node:path";
import { run } from "../systemd/base/run.ts";
import { cpuMsOf } from "./cpu.ts";
import type { Percentiles } from "./statistics.ts";

/** Connections of a full load, each with one request at a time. */
const fullConnections = 32;

export const loadGeneratorName = `wrk, ${fullConnections} connections`;

/** How long a connection of a steady load rests between an answer and its next request, on average. */
const restMs = 10;

export interface Load {
  readonly url: string;
  /** The process id of the server. */
  readonly pid: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole seconds, because wrk takes nothing else. */
  readonly durationS: number;
  /** About how many calls a second are to be made; as many as possible when absent. */
  readonly perSecond?: number;
}

export interface LoadResult extends Percentiles {
  readonly requests: number;
  readonly perSecond: number;
  /** Calls for each second of CPU time that the server used, which is what it would answer if it had a CPU of its own. */
  readonly perCpuSecond: number;
}

/** The output of `wrk-report.lua`. */
interface WrkReport extends Percentiles {
  readonly requests: number;
  readonly durationMs: number;
  readonly errors: number;
}

/** @throws {Error} if any answer is not 2xx */
export async function httpLoad({ url, pid, headers, durationS, perSecond }: Load): Promise<LoadResult> {
  const connections = perSecond === undefined ? fullConnections : Math.ceil((perSecond * restMs) / 1_000);
  const options = ["--threads", "1", "--connections", String(connections), "--duration", `${durationS}s`];
  const headerOptions = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
  const script = ["--script", join(import.meta.dirname, "wrk-report.lua")];
  const usedMs = cpuMsOf(pid);
  const output = await run(["wrk", ...options, ...headerOptions, ...script, url, ...(perSecond === undefined ? [] : [String(restMs)])], {
    timeoutMs: (durationS + 30) * 1_000,
  });
  const cpuMs = cpuMsOf(pid) - usedMs;
  const { durationMs, errors, ...result } = JSON.parse(output.split("\n").at(-1) ?? "") as WrkReport;
  if (errors > 0) throw new Error(`${errors} of the calls of ${url} failed`);
  return { ...result, perSecond: (result.requests * 1_000) / durationMs, perCpuSecond: (result.requests * 1_000) / cpuMs };
}
