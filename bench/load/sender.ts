/** Sends arrivals when they are due, whatever has become of those before them: an open loop. */
import { Deadline } from "../../shared/abort.ts";
import type { Sandgate } from "../../shared/client/index.ts";
import type { SandboxHandle } from "../../shared/client/sandbox.ts";
import { Condition, pause } from "../../shared/waiting.ts";
import { perform, timeoutDefaultS } from "./actions.ts";
import type { Fleet } from "./fleet.ts";
import { type Arrival, intervalCount, type Recorder, StepFailure } from "./recorder.ts";
import type { Sending } from "./result.ts";
import { achievedPerS, type Schedule } from "./schedule.ts";
import { needsSandbox, type Step } from "./workload.ts";

/** Sent later than this after its time, an arrival counts as late: much more than timers are off by. */
const lateMs = 10;
/** How soon an interruption is noticed while nothing else happens. */
const interruptedMs = 200;
/** As many sockets as the client library keeps to one server: more calls would wait inside it. */
export const callsPerClient = 256;

export interface Deployment {
  /** Makes a client with connections of its own, which retries nothing. */
  readonly connect: () => Sandgate;
  readonly fleet: Fleet;
  /** Prepared for the steps that need one. */
  readonly sandboxes: readonly SandboxHandle[];
  readonly steps: readonly Step[];
  /** How many actions may be under way. What is due beyond that waits. */
  readonly inFlightMax: number;
  readonly random: () => number;
  readonly signal: AbortSignal;
}

interface Connected {
  readonly client: Sandgate;
  calls: number;
}

export class Sender {
  readonly #deployment: Deployment;
  readonly #clients: Connected[] = [];
  readonly #totalWeight: number;
  readonly #change = new Condition();
  #inFlight = 0;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    this.#totalWeight = deployment.steps.reduce((sum, { weight = 1 }) => sum + weight, 0);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Sends a schedule and waits for the end of what was sent. What is still waiting when the schedule is over is not sent.
   *
   * @param prefix comes before the names of the rows
   */
  async send(schedule: Schedule, recorder: Recorder, prefix = ""): Promise<Sending> {
    const { signal, inFlightMax } = this.#deployment;
    const [beganMs, utilization] = [performance.now(), performance.eventLoopUtilization()];
    const ended: number[] = [];
    const running = new Set<Promise<void>>();
    const told = { late: 0, lateMsMax: 0, sent: 0, inFlightMax: 0 };
    for (const [index, atMs] of schedule.arrivalsMs.entries()) {
      if (!(await this.#isTurn(schedule, beganMs, atMs, inFlightMax))) break;
      const dueMs = atMs === undefined ? performance.now() : beganMs + atMs;
      const behindMs = performance.now() - dueMs;
      if (behindMs > lateMs) told.late++;
      told.lateMsMax = Math.max(told.lateMsMax, behindMs);
      told.sent++;
      const step = this.#choose();
      const arrival: Arrival = { row: prefix + step.name, dueMs, interval: Math.floor((index * intervalCount) / schedule.arrivalsMs.length) };
      const action = this.#carryOut(step, arrival, recorder, () => ended.push(performance.now() - beganMs)).finally(() => running.delete(action));
      running.add(action);
      told.inFlightMax = Math.max(told.inFlightMax, this.#inFlight);
    }
    await Promise.all(running);
    const scheduled = signal.aborted ? told.sent : schedule.arrivalsMs.length;
    const durationMs = performance.now() - beganMs;
    const busy = performance.eventLoopUtilization(utilization).utilization;
    const rates = { busy, durationS: durationMs / 1_000, achievedPerS: achievedPerS(schedule, ended), timeline: timelineOf(schedule, ended, durationMs) };
    return { name: schedule.name, ...(schedule.rate ? { rate: schedule.rate } : {}), scheduled, unsent: scheduled - told.sent, ...told, ...rates };
  }

  /** Resolves when an arrival is due and there is room for it. @returns false if it is not to be sent any more */
  async #isTurn({ windowMs }: Schedule, beganMs: number, atMs: number | undefined, inFlightMax: number): Promise<boolean> {
    const { signal } = this.#deployment;
    const waitMs = atMs === undefined ? 0 : beganMs + atMs - performance.now();
    if (waitMs > 0) await pause(waitMs, signal).catch(() => undefined);
    const room = atMs === undefined ? 1 : inFlightMax;
    while (this.#inFlight >= room && !signal.aborted) {
      const leftMs = windowMs === undefined ? undefined : beganMs + windowMs - performance.now();
      if (leftMs !== undefined && leftMs <= 0) return false;
      await this.#change.wait(Math.min(leftMs ?? interruptedMs, interruptedMs));
    }
    return !signal.aborted;
  }

  #choose(): Step {
    const { steps, random } = this.#deployment;
    let at = random() * this.#totalWeight;
    for (const step of steps) {
      at -= step.weight ?? 1;
      if (at < 0) return step;
    }
    return steps.at(-1) as Step;
  }

  async #carryOut(step: Step, arrival: Arrival, recorder: Recorder, onEnd: () => void): Promise<void> {
    const connected = this.#connected();
    const { signal, fleet, sandboxes, random } = this.#deployment;
    const sandbox = needsSandbox(step) ? (sandboxes[Math.floor(random() * sandboxes.length)] as SandboxHandle) : connected.client.sandbox("none");
    const timeoutMs = (step.timeoutS ?? timeoutDefaultS) * 1_000;
    const deadline = new Deadline(signal, timeoutMs);
    this.#inFlight++;
    connected.calls++;
    try {
      const mark = (name: string, ms: number): void => recorder.mark(arrival, name, ms);
      const target = connected.client.sandbox(sandbox.id);
      const { bytes = 0, after } = await perform(step, { client: connected.client, fleet, sandbox: target, signal: deadline.signal, timeoutMs, mark });
      recorder.done(arrival, bytes);
      onEnd();
      await after?.().catch((error: unknown) => recorder.failedAfterwards(arrival, error));
    } catch (error) {
      if (!signal.aborted) recorder.failed(arrival, deadline.isOver ? new StepFailure("timeout", `not done in ${timeoutMs} ms`) : error);
    } finally {
      deadline.release();
      this.#inFlight--;
      connected.calls--;
      this.#change.notify();
    }
  }

  /** The client with the fewest calls; another one when all have as many as they can send at once. */
  #connected(): Connected {
    const free = this.#clients.filter(({ calls }) => calls < callsPerClient).sort((one, other) => one.calls - other.calls)[0];
    if (free) return free;
    const made = { client: this.#deployment.connect(), calls: 0 };
    this.#clients.push(made);
    return made;
  }
}

/** When arrivals were due and when actions ended, in as many intervals as everything else. */
function timelineOf({ arrivalsMs }: Schedule, ended: readonly number[], durationMs: number): Sending["timeline"] {
  const width = Math.max(1, durationMs) / intervalCount;
  const bins = Array.from({ length: intervalCount }, (_, index) => ({ atS: (index * width) / 1_000, scheduled: 0, ended: 0 }));
  const bin = (ms: number) => bins[Math.min(intervalCount - 1, Math.floor(ms / width))] as (typeof bins)[number];
  for (const ms of arrivalsMs) if (ms !== undefined) bin(ms).scheduled++;
  for (const ms of ended) bin(ms).ended++;
  return bins;
}
