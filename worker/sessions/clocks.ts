/** The times of a session: how long it may take, may be idle, and may be without a client. */
import { StallClock } from "../../shared/waiting.ts";
import type { Stop } from "./end.ts";

export interface ClockEvents {
  /** A time is over while the command runs. */
  stop(stop: Stop): void;
  /** Nobody was there for so long. */
  alone(detachMs: number): void;
}

export interface Times {
  readonly detachMs: number;
  /** Without input and output for this long it is ended; 0: never. */
  readonly idleMs: number;
  readonly timeoutMs: number | undefined;
}

export class SessionClocks {
  readonly #times: Times;
  readonly #events: ClockEvents;
  readonly #idle: StallClock;
  #timeout: NodeJS.Timeout | undefined;
  #detached: NodeJS.Timeout | undefined;

  constructor(times: Times, events: ClockEvents) {
    this.#times = times;
    this.#events = events;
    const { idleMs } = times;
    this.#idle = new StallClock(idleMs, () => events.stop({ kind: "limit", reason: `there was no input and no output for ${idleMs / 1_000} s` }));
  }

  /** The command runs. */
  start(): void {
    const { idleMs, timeoutMs } = this.#times;
    if (idleMs > 0) this.#idle.start();
    if (timeoutMs === undefined) return;
    const late = { kind: "timeout", reason: `the command was ended after ${timeoutMs / 1_000} s, its timeout` } as const;
    this.#timeout = setTimeout(() => this.#events.stop(late), timeoutMs);
  }

  /** Input or output has come. */
  traffic(): void {
    this.#idle.progress();
  }

  /** The command has ended. */
  stop(): void {
    this.#idle.stop();
    clearTimeout(this.#timeout);
  }

  /** The last client has left. */
  left(): void {
    clearTimeout(this.#detached);
    const { detachMs } = this.#times;
    this.#detached = setTimeout(() => this.#events.alone(detachMs), detachMs);
    // A worker stops by itself: nothing waits for this.
    this.#detached.unref();
  }

  joined(): void {
    clearTimeout(this.#detached);
  }
}
