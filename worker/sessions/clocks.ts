/** The time limits of a session: how long it may run, be idle, and be without a client. */
import { StallClock } from "../../shared/waiting.ts";
import type { Stop } from "./end.ts";

interface Listener {
  /** A limit was reached while the command runs. */
  stop(stop: Stop): void;
  /** No client was attached for `detachMs`. */
  alone(detachMs: number): void;
}

export interface Times {
  readonly detachMs: number;
  /** The session ends after this long without input and output; 0: never. */
  readonly idleMs: number;
  readonly timeoutMs: number | undefined;
}

export class SessionClocks {
  readonly #times: Times;
  readonly #session: Listener;
  readonly #idle: StallClock;
  #timeout: NodeJS.Timeout | undefined;
  #startedAtMs = 0;
  #detached: NodeJS.Timeout | undefined;

  constructor(times: Times, session: Listener) {
    this.#times = times;
    this.#session = session;
    const { idleMs } = times;
    this.#idle = new StallClock(idleMs, () => session.stop({ kind: "limit", reason: `there was no input and no output for ${idleMs / 1_000} s` }));
  }

  /** What is left of the time that the command may take; undefined if that has no limit. */
  get leftMs(): number | undefined {
    const { timeoutMs } = this.#times;
    return timeoutMs === undefined ? undefined : Math.max(1, Math.ceil(this.#startedAtMs + timeoutMs - performance.now()));
  }

  /** The command has started. */
  start(): void {
    this.#startedAtMs = performance.now();
    const { idleMs, timeoutMs } = this.#times;
    if (idleMs > 0) this.#idle.start();
    if (timeoutMs === undefined) return;
    const late = { kind: "timeout", reason: `the command was ended after ${timeoutMs / 1_000} s, its timeout` } as const;
    this.#timeout = setTimeout(() => this.#session.stop(late), timeoutMs);
  }

  /** Input or output has arrived. */
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
    this.#detached = setTimeout(() => this.#session.alone(detachMs), detachMs);
    // This timer must not keep a stopping worker alive.
    this.#detached.unref();
  }

  joined(): void {
    clearTimeout(this.#detached);
  }
}
