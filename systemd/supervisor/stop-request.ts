/** The wish of the person, npm, or the system that everything stops. */

/**
 * One Ctrl-C arrives several times: from the terminal, which signals the whole group, and passed on by npm.
 * What comes within this time of the first is the same wish.
 */
const sameWishMs = 1_000;

export class StopRequest {
  readonly #polite = new AbortController();
  readonly #urgent = new AbortController();
  #firstMs: number | undefined;

  /** Aborted when a stop was asked for. */
  get signal(): AbortSignal {
    return this.#polite.signal;
  }

  /** Aborted when it was asked for again. */
  get again(): AbortSignal {
    return this.#urgent.signal;
  }

  ask(reason: string): void {
    this.#firstMs ??= Date.now();
    this.#polite.abort(reason);
  }

  /** A wish that means "at once" when it comes for the second time. */
  insist(reason: string): void {
    if (this.#firstMs !== undefined && Date.now() - this.#firstMs > sameWishMs) this.#urgent.abort(reason);
    this.ask(reason);
  }
}

const lookMs = 1_000;

/** Listens to signals, and looks whether npm is still there: it passes them on, but says nothing when it is killed itself. */
export function listenForStop(): StopRequest {
  const request = new StopRequest();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => request.insist(signal));
  process.on("SIGHUP", () => request.ask("the terminal was closed"));
  if (process.env.npm_lifecycle_event) {
    const npm = process.ppid;
    setInterval(() => process.ppid !== npm && request.ask("npm is gone"), lookMs).unref();
  }
  return request;
}
