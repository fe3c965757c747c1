/** Waiting for time to pass or for events. The published client uses this too, so it needs only what Node 18 and browsers have. */

import { onAbort } from "./abort.ts";

type Timer = ReturnType<typeof setTimeout>;

/** Waits. @param ms milliseconds. @throws the signal's reason if it is aborted first */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    const ignore = onAbort(signal, (reason) => {
      clearTimeout(timer);
      reject(reason);
    });
    if (signal?.aborted) return;
    timer = setTimeout(() => {
      ignore();
      resolve();
    }, ms);
  });
}

/** How often `until` polls, and for how long; without `timeoutMs`, forever. */
export interface Polling {
  readonly pollMs: number;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Polls until the answer is truthy. Only for conditions that cannot notify.
 *
 * @returns the last answer, which is the first truthy one unless the time ran out
 * @throws what `ask` throws; the signal's reason
 */
export async function until<T>(ask: () => T | Promise<T>, { pollMs, timeoutMs = Number.POSITIVE_INFINITY, signal }: Polling): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const answer = await ask();
    const leftMs = deadlineMs - performance.now();
    if (answer || leftMs <= 0) return answer;
    await pause(Math.min(pollMs, leftMs), signal);
  }
}

/**
 * Repeats an attempt that fails.
 *
 * @param pauseMs milliseconds to wait after a failure, or undefined to throw it. `attempt` counts from 0
 * @throws the last failure; the signal's reason
 */
export async function retry<T>(
  action: (attempt: number) => Promise<T>,
  pauseMs: (error: unknown, attempt: number) => number | undefined,
  signal?: AbortSignal,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await action(attempt);
    } catch (error) {
      const waitMs = pauseMs(error, attempt);
      if (waitMs === undefined) throw error;
      await pause(waitMs, signal);
    }
  }
}

/** The pause after a failure in milliseconds, doubled each time. @param attempt the number of earlier failures */
export function backoffMs(attempt: number, { firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number }): number {
  return Math.min(maxMs, firstMs * 2 ** attempt);
}

/** A random time between half of `ms` and all of it, so that clients that fail together do not retry together. */
export function jittered(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}

/** The result of a promise, or undefined if it takes longer than `ms`. The caller must still handle the promise itself. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController();
  const time = pause(ms, over.signal).catch(() => undefined) as Promise<undefined>;
  try {
    return await Promise.race([promise, time]);
  } finally {
    over.abort();
  }
}

/** Calls back when there has been no progress for a given time. */
export class StallClock {
  readonly #stallMs: number;
  readonly #ring: () => void;
  #timer: Timer | undefined;
  #progressAtMs = 0;

  constructor(stallMs: number, ring: () => void) {
    this.#stallMs = stallMs;
    this.#ring = ring;
  }

  start(): this {
    this.stop();
    this.progress();
    this.#ringIn(this.#stallMs);
    return this;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Reports progress. Cheap, because it touches no timer. */
  progress(): void {
    this.#progressAtMs = performance.now();
  }

  /** Runs the clock while a promise is pending, for waits that depend on the progress. */
  async during<T>(wait: Promise<T>): Promise<T> {
    this.start();
    try {
      return await wait;
    } finally {
      this.stop();
    }
  }

  #ringIn(ms: number): void {
    this.#timer = setTimeout(() => {
      const leftMs = this.#progressAtMs + this.#stallMs - performance.now();
      if (leftMs > 0) this.#ringIn(leftMs);
      else this.#ring();
    }, ms);
  }
}

/** A condition that tasks wait for, notified whenever it may have become true. */
export class Condition {
  #next: Deferred<void> | undefined;

  /** Wakes all waiters: the condition may have become true. */
  notify(): void {
    this.#next?.resolve();
    this.#next = undefined;
  }

  /** Resolves at the next notification, or after `ms` milliseconds. */
  async wait(ms?: number): Promise<void> {
    this.#next ??= deferred();
    await (ms === undefined ? this.#next.promise : within(this.#next.promise, ms));
  }

  /** Resolves when the condition is true. @returns whether it became true before the timeout */
  async until(isTrue: () => boolean, timeoutMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    const deadlineMs = performance.now() + timeoutMs;
    while (!isTrue()) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return false;
      await this.wait(leftMs === Number.POSITIVE_INFINITY ? undefined : leftMs);
    }
    return true;
  }
}

/** A promise with its resolve and reject functions. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
