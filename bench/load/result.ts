/** The result of a load as it is written to a file and read for a comparison. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import Type, { type Static } from "typebox";
import { messageOf, UsageError } from "../../shared/cli/failures.ts";
import { checker } from "../../shared/schemas/validate.ts";

const format = "sandgate-load/1";
const text = Type.String();
const number = Type.Number();
const record = Type.Record(Type.String(), Type.Number());

const Interval = Type.Object({
  count: number,
  failures: number,
  p50: number,
  p99: number,
  /** The successes: base64 of the compressed V2 format of HdrHistogram, in microseconds. */
  histogram: text,
});

const Row = Type.Object({
  name: text,
  /** Whether this is a time within the action of the row above. */
  isMark: Type.Boolean(),
  /** Actions that have ended, with failures. */
  count: number,
  failures: number,
  /** Those of the failures that were refused with 429. */
  refused: number,
  bytes: number,
  /** Failures by code. */
  errors: record,
  /** Milliseconds of the successes, from when they were to begin. */
  ms: Type.Object({ mean: number, p50: number, p90: number, p95: number, p99: number, p999: number, max: number }),
  intervals: Type.Array(Interval),
});
export type RowResult = Static<typeof Row>;

/** How a load was sent. */
const Sending = Type.Object({
  name: text,
  /** Arrivals a second; absent for a phase by number. */
  rate: Type.Optional(number),
  /** From the first arrival to the end of the last action. */
  durationS: number,
  scheduled: number,
  sent: number,
  /** Sent more than 10 ms after they were due. */
  late: number,
  lateMsMax: number,
  /** Not sent at all, because too many were under way until the end. */
  unsent: number,
  /** Actions that ended a second, without failures, over the later three quarters of the time in which they arrived. */
  achievedPerS: number,
  inFlightMax: number,
  /** Share of the time in which the generator's event loop had something to do, 0 to 1. */
  busy: number,
  /** Per interval: when it began, and how many actions ended in that time. */
  timeline: Type.Array(Type.Object({ atS: number, scheduled: number, ended: number })),
});
export type Sending = Static<typeof Sending>;

const Generator = Type.Object({
  /** The largest `busy` of all that it sent. */
  busy: number,
  /** CPUs that it used. */
  cpus: number,
  loopDelayMsP99: number,
  /** Why the generator itself may have been the limit; empty when it was not. */
  limits: Type.Array(text),
});
export type GeneratorResult = Static<typeof Generator>;

const Step = Type.Object({
  rate: number,
  achievedPerS: number,
  p50: number,
  p99: number,
  failures: number,
  refused: number,
  count: number,
  /** Why the deployment bends at this rate; absent when it holds it. */
  bends: Type.Optional(text),
});
export type LimitStep = Static<typeof Step>;

const Limit = Type.Object({
  /** The highest rate that held; 0 if none did. */
  holds: number,
  /** The lowest rate that did not; absent if all held. */
  bends: Type.Optional(number),
  why: text,
  p99MsMax: number,
  steps: Type.Array(Step),
});
export type LimitResult = Static<typeof Limit>;

const Result = Type.Object({
  format: Type.Literal(format),
  runId: text,
  startedAt: text,
  durationS: number,
  target: text,
  mix: text,
  about: text,
  /** What was sent, in words. */
  load: text,
  seed: number,
  machine: Type.Object({ cpu: text, cores: number, memoryGiB: number, node: text, kernel: text, loadAverage: number }),
  sendings: Type.Array(Sending),
  generator: Generator,
  rows: Type.Array(Row),
  /** The first message of each failure, by code. */
  messages: Type.Record(Type.String(), Type.String()),
  limit: Type.Optional(Limit),
  /** Whether Ctrl-C or an error ended it early. */
  isComplete: Type.Boolean(),
  /** Sandboxes that could not be deleted. */
  leftOver: Type.Array(text),
});
export type Result = Static<typeof Result>;

const check = checker(Result);

export const resultFormat = format;

/** @throws {UsageError} if it is no result */
export function readResult(file: string, shown = file): Result {
  try {
    return check(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    throw new UsageError(`${shown} is no result of npm run load --json: ${messageOf(error)}`);
  }
}

/** Writes a file, with the folders it needs. */
export function writeOutput(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
