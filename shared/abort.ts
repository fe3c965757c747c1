/** Cancellation by signals, with nothing that Node 18 or a browser lacks: the published client uses this as well. */

/** Calls back once when the signal is aborted, at once where it is already. @returns what ends that */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (!signal) return () => {};
  const listen = (): void => listener(signal.reason);
  if (signal.aborted) listen();
  else signal.addEventListener("abort", listen, { once: true });
  return () => signal.removeEventListener("abort", listen);
}

/** Does what `stop` ends, which is called when the signal is aborted, also where it is before the work has begun. */
export async function stoppedBy<T>(signal: AbortSignal | undefined, stop: (reason: unknown) => void, work: () => Promise<T>): Promise<T> {
  const ignore = onAbort(signal, stop);
  try {
    return await work();
  } finally {
    ignore();
  }
}

/** What a promise brings. @throws the reason of the signal as soon as it is aborted */
export function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const ignore = onAbort(signal, reject);
    promise.then(resolve, reject).finally(ignore);
  });
}

/** What ends a call: the caller's signal, the time, or `abort`. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #ignore: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** @param timeoutMs milliseconds; undefined for no bound */
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

  /** Whether the time was it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** The time counts no more; the caller's signal still does. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  /** The call has ended. */
  release(): void {
    this.stopClock();
    this.#ignore();
  }
}
