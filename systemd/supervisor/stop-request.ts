/** The request from the user, npm or the system to stop everything. */

/**
 * One Ctrl-C arrives several times: from the terminal, which signals the whole group, and forwarded by npm.
 * Requests within this time of the first count as the same one.
 */
const sameWishMs = 1_000;

export class StopRequest {
  readonly #polite = new AbortController();
  readonly #urgent = new AbortController();
  #firstMs: number | undefined;

  /** Aborted when a stop is requested. */
  get signal(): AbortSignal {
    return this.#polite.signal;
  }

  /** Aborted when a stop is requested again. */
  get again(): AbortSignal {
    return this.#urgent.signal;
  }

  ask(reason: string): void {
    this.#firstMs ??= Date.now();
    this.#polite.abort(reason);
  }

  /** Requests a stop; a second request means "at once". */
  insist(reason: string): void {
    if (this.#firstMs !== undefined && Date.now() - this.#firstMs > sameWishMs) this.#urgent.abort(reason);
    this.ask(reason);
  }
}

const lookMs = 1_000;

/** Listens for signals, and checks that npm still runs: npm forwards signals, but sends none when it is killed itself. */
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
