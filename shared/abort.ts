/** Cancellation by signals. The published client uses this too, so it needs only what Node 18 and browsers have. */

/** Calls the listener once when the signal is aborted, at once if it already is. @returns removes the listener */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (!signal) return () => {};
  const listen = (): void => listener(signal.reason);
  if (signal.aborted) listen();
  else signal.addEventListener("abort", listen, { once: true });
  return () => signal.removeEventListener("abort", listen);
}

/** Runs `work`, and calls `stop` when the signal is aborted; if it is aborted already, `stop` is called before the work begins. */
export async function stoppedBy<T>(signal: AbortSignal | undefined, stop: (reason: unknown) => void, work: () => Promise<T>): Promise<T> {
  const ignore = onAbort(signal, stop);
  try {
    return await work();
  } finally {
    ignore();
  }
}

/** The result of a promise. @throws the signal's reason as soon as it is aborted */
export function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const ignore = onAbort(signal, reject);
    promise.then(resolve, reject).finally(ignore);
  });
}

/** Ends a call: by the caller's signal, a timeout, or `abort`. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #ignore: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** @param timeoutMs milliseconds; undefined for no timeout */
  constructor(signal: AbortSignal | undefined, timeoutMs?: number) {
    this.#ignore = onAbort(signal, (reason) => this.abort(reason));
    if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.abort(new Error(`no answer in ${timeoutMs} ms`));
    }, timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the timeout ended the call. */
  get isOver(): boolean {
    return this.#isOver;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Stops the timeout; the caller's signal still counts. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  /** Releases timer and listener after the call has ended. */
  release(): void {
    this.stopClock();
    this.#ignore();
  }
}
