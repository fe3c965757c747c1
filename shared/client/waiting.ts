/** Time and cancellation, with nothing that Node 18 or a browser lacks. */

/** Waits. @param ms milliseconds. @throws the reason of the signal when that comes first */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const done = (): void => {
      signal?.removeEventListener("abort", stop);
      resolve();
    };
    const timer = setTimeout(done, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** What ends a call: the caller's signal, or the time. */
export interface Limit {
  readonly signal: AbortSignal;
  /** Whether the time was it. */
  readonly isOver: boolean;
  /** The time counts no more; the caller's signal still does. */
  stopClock(): void;
  /** The call has ended. */
  release(): void;
}

/** @param timeoutMs milliseconds; undefined for no bound */
export function limit(signal: AbortSignal | undefined, timeoutMs: number | undefined): Limit {
  const controller = new AbortController();
  let isOver = false;
  const abort = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  const ring = (): void => {
    isOver = true;
    controller.abort(new Error(`no answer in ${timeoutMs} ms`));
  };
  const timer = timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(ring, timeoutMs);
  const stopClock = (): void => clearTimeout(timer);
  return {
    signal: controller.signal,
    get isOver() {
      return isOver;
    },
    stopClock,
    release() {
      stopClock();
      signal?.removeEventListener("abort", abort);
    },
  };
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
