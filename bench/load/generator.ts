/** Watches this process: what it cannot keep up with, it would blame on the deployment. */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { loadAverage } from "../computer.ts";
import type { GeneratorResult, Sending } from "./result.ts";

/** From this share of its time on, the event loop has work waiting more often than not. */
export const busyMax = 0.85;
const loopDelayMsMax = 50;
/** Share of the arrivals that may be sent late, and by how much more may be. */
const lateShareMax = 0.01;
const lateMsMax = 100;

const resolutionMs = 10;
const nsPerMs = 1_000_000;
const usPerMs = 1_000;

export class GeneratorWatch {
  readonly #delay = monitorEventLoopDelay({ resolution: resolutionMs });
  #cpuMs = 0;
  #watchedMs = 0;

  /** Watches during this work only, not during preparation and removal. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const [cpu, sinceMs] = [process.cpuUsage(), performance.now()];
    this.#delay.enable();
    try {
      return await work();
    } finally {
      this.#delay.disable();
      const { user, system } = process.cpuUsage(cpu);
      this.#cpuMs += (user + system) / usPerMs;
      this.#watchedMs += performance.now() - sinceMs;
    }
  }

  /** @param sendings what the result says something about */
  result(sendings: readonly Sending[]): GeneratorResult {
    const loopDelayMsP99 = Math.max(0, this.#delay.percentile(99) / nsPerMs - resolutionMs);
    const busy = Math.max(0, ...sendings.map((one) => one.busy));
    return { busy, cpus: this.#cpuMs / Math.max(1, this.#watchedMs), loopDelayMsP99, limits: limitsOf(busy, loopDelayMsP99, sendings) };
  }
}

function limitsOf(busy: number, loopDelayMsP99: number, sendings: readonly Sending[]): string[] {
  const sum = (pick: (sending: Sending) => number): number => sendings.reduce((total, sending) => total + pick(sending), 0);
  const [late, scheduled, unsent] = [sum((one) => one.late), sum((one) => one.scheduled), sum((one) => one.unsent)];
  const latest = Math.max(0, ...sendings.map((one) => one.lateMsMax));
  const inFlightMax = Math.max(0, ...sendings.map((one) => one.inFlightMax));
  const isLate = unsent === 0 && late > lateShareMax * scheduled && latest > lateMsMax;
  return [
    ...(busy > busyMax ? [`its event loop was busy for ${Math.round(busy * 100)} % of the time`] : []),
    ...(loopDelayMsP99 > loopDelayMsMax
      ? [`its event loop was delayed by ${Math.round(loopDelayMsP99)} ms (p99); the load average is ${loadAverage().toFixed(1)}`]
      : []),
    ...(unsent > 0 ? [`${unsent} of ${scheduled} arrivals were not sent, because ${inFlightMax} were under way (--in-flight)`] : []),
    ...(isLate ? [`${late} of ${scheduled} arrivals were sent more than 10 ms late, ${Math.round(latest)} ms at most`] : []),
  ];
}
