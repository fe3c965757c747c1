/** Waiting for a time and for others, with nothing that Node 18 or a browser lacks: the published client waits with this as well. */

import { onAbort } from "./abort.ts";

type Timer = ReturnType<typeof setTimeout>;

/** Waits. @param ms milliseconds. @throws the reason of the signal when that comes first */
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

/** How often `until` asks, and for how long; without `timeoutMs` for ever. */
export interface Polling {
  readonly pollMs: number;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks again and again until the answer is something, or true. What can tell of itself is no case for this.
 *
 * @returns the last answer, which is the first good one unless the time was over
 * @throws what `ask` throws; the reason of the signal
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
 * Does again what has failed.
 *
 * @param pauseMs how long to wait after a failure, in milliseconds; undefined: it is thrown. `attempt` counts from 0
 * @throws the last failure; the reason of the signal
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

/** The pause after a failure, in milliseconds: doubled with each one. @param attempt how many failures there were before it */
export function backoffMs(attempt: number, { firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number }): number {
  return Math.min(maxMs, firstMs * 2 ** attempt);
}

/** So that those who fail together do not try again together: between half of the time and all of it. */
export function jittered(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}

/** What a promise brings, or undefined where that takes longer. It is still the caller's to wait for. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController();
  const time = pause(ms, over.signal).catch(() => undefined) as Promise<undefined>;
  try {
    return await Promise.race([promise, time]);
  } finally {
    over.abort();
  }
}

/** Rings when nothing has gone on for so long. */
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

  /** Something goes on. Cheap, because it touches no timer. */
  progress(): void {
    this.#progressAtMs = performance.now();
  }

  /** Runs for as long as something is waited for, which is what should go on. */
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

/** What others wait for, and are told of whenever it may have come true. */
export class Condition {
  #next: Deferred<void> | undefined;

  /** It may have come true: whoever waits looks. */
  notify(): void {
    this.#next?.resolve();
    this.#next = undefined;
  }

  /** Resolves when the next notice comes, or when so much time is over. */
  async wait(ms?: number): Promise<void> {
    this.#next ??= deferred();
    await (ms === undefined ? this.#next.promise : within(this.#next.promise, ms));
  }

  /** Resolves once it is true. @returns whether it was before the time was over */
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

/** A promise with its handles. */
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
