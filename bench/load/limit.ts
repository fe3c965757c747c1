/** Finds the rate at which a deployment bends: doubles the rate until it does, then halves the distance. */
import { pause } from "../../shared/waiting.ts";
import { precise } from "../precise.ts";
import { busyMax } from "./generator.ts";
import type { LoadOptions } from "./options.ts";
import type { Recorder } from "./recorder.ts";
import type { LimitResult, LimitStep, Sending } from "./result.ts";

/** Share of failed actions from which on a deployment does not hold a rate. */
const failureShareMax = 0.01;
/** Share of the offered rate that must be reached. */
const achievedShareMin = 0.95;
/** With fewer arrivals, chance alone can miss `achievedShareMin` by this many. */
const slackActions = 2;
/** The found rates are this close together. */
const precision = 1.1;
const doublingsMax = 16;
/** At most, between two steps, so that what the one before has left behind is over. */
const settleMsMax = 1_000;

interface Sent {
  readonly sending: Sending;
  readonly recorder: Recorder;
}

interface Found {
  readonly result: LimitResult;
  readonly sendings: Sending[];
  /** Of the highest rate that held: the rates above are to overload the generator's machine, too, if that is the deployment's. */
  readonly judged: Sending[];
  /** Of the step with the highest rate that held, or else of the last one. */
  readonly last: Recorder;
}

/** @param send sends one rate, and waits for the end of all that was sent */
export async function findLimit(
  { rate, durationMs, p99MsMax }: Pick<LoadOptions, "rate" | "durationMs" | "p99MsMax">,
  send: (rate: number) => Promise<Sent>,
  signal: AbortSignal,
): Promise<Found> {
  const steps: LimitStep[] = [];
  const sendings: Sending[] = [];
  let [holds, bends] = [0, undefined as LimitStep | undefined];
  let last: Recorder | undefined;
  let judged: Sending[] = [];
  const once = async (tried: number): Promise<{ step: LimitStep; recorder: Recorder }> => {
    if (steps.length > 0) await pause(Math.min(settleMsMax, durationMs), signal);
    const { sending, recorder } = await send(tried);
    signal.throwIfAborted();
    const step = stepOf(tried, sending, recorder, p99MsMax);
    steps.push(step);
    sendings.push(sending);
    return { step, recorder };
  };
  /** A rate that bends is tried a second time, because one disturbance is no limit. */
  const holdsAt = async (tried: number): Promise<boolean> => {
    let { step, recorder } = await once(tried);
    if (step.bends !== undefined) ({ step, recorder } = await once(tried));
    if (step.bends === undefined) [holds, last, judged] = [tried, recorder, sendings.slice(-1)];
    else [bends, last] = [step, last ?? recorder];
    return step.bends === undefined;
  };
  for (let tried = rate, doublings = 0; doublings < doublingsMax && (await holdsAt(tried)); doublings++) tried *= 2;
  // Below the first rate there is no lower bound yet: it is halved until one holds.
  for (let tried = rate / 2; bends && holds === 0 && tried >= rate / 64; tried /= 2) await holdsAt(tried);
  while (bends && holds > 0 && bends.rate / holds > precision) await holdsAt(between(holds, bends.rate));
  return { result: resultOf(holds, bends, p99MsMax, steps), sendings, judged, last: last as Recorder };
}

/** The middle of two rates, with three significant figures. */
function between(low: number, high: number): number {
  return Number(((low + high) / 2).toPrecision(3));
}

function resultOf(holds: number, bends: LimitStep | undefined, p99MsMax: number, steps: readonly LimitStep[]): LimitResult {
  const found = { holds, p99MsMax, steps: [...steps] };
  if (!bends) return { ...found, why: `holds ${holds}/s, the highest rate that was tried` };
  const held = holds > 0 ? `holds ${holds}/s and bends at ${bends.rate}/s` : `bends already at ${bends.rate}/s`;
  return { ...found, bends: bends.rate, why: `${held}: ${bends.bends}` };
}

/** What one rate has shown. */
export function stepOf(rate: number, { achievedPerS, scheduled, unsent, busy }: Sending, recorder: Recorder, p99MsMax: number): LimitStep {
  const { all, failures, refused } = recorder;
  const p99 = all.percentile(0.99);
  const counted = { rate, achievedPerS, p50: all.percentile(0.5), p99, failures, refused, count: scheduled };
  const isBelow = achievedPerS < achievedShareMin * rate && (rate - achievedPerS) * (scheduled / rate) > slackActions;
  const reasons = [
    ...(failures > failureShareMax * scheduled
      ? [`${failures} of ${scheduled} actions failed${refused > 0 ? `, ${refused} of them refused by a limit (429)` : ""}`]
      : []),
    ...(p99 > p99MsMax ? [`p99 is ${Math.round(p99)} ms, above ${p99MsMax} ms`] : []),
    ...(isBelow ? [`${precise(achievedPerS)}/s were done of ${rate}/s`] : []),
    ...(unsent > 0 ? [`${unsent} arrivals could not be sent`] : []),
    ...(busy > busyMax ? [`the generator was busy for ${Math.round(busy * 100)} % of the time, so that this may be its limit`] : []),
  ];
  return reasons.length > 0 ? { ...counted, bends: reasons.join("; ") } : counted;
}
