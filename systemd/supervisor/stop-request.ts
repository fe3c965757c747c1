/** The wish of the person, npm, or the system that everything stops. */
import { readFileSync } from "node:fs";

/**
 * One Ctrl-C arrives several times: from the terminal, which signals the whole group, and passed on by npm and start.mjs.
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
    if (!this.#polite.signal.aborted) this.#polite.abort(reason);
    else if (Date.now() - this.#firstMs > sameWishMs) this.#urgent.abort(reason);
  }
}

/** Listens to signals and to the end of start.mjs. */
export function listenForStop(): StopRequest {
  const request = new StopRequest();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => request.ask(signal));
  const outlivesTerminal = hangupIsIgnoredAbove();
  process.on("SIGHUP", () => outlivesTerminal || request.ask("SIGHUP"));
  if (process.channel) {
    process.once("disconnect", () => request.ask("start.mjs is gone"));
    process.channel.unref();
  }
  return request;
}

/**
 * Whether npm was started by nohup(1) or the like. Node.js resets ignored signals in the processes that it starts, so the
 * answer is in its ancestors: start.mjs, npm and the shell between them. SigIgn of /proc/PID/status, see proc(5).
 */
function hangupIsIgnoredAbove(): boolean {
  let pid = process.ppid;
  for (let depth = 0; depth < 3 && pid > 1; depth++) {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    if (/^SigIgn:\s*[0-9a-f]*[13579bdf]$/m.test(status)) return true; // SIGHUP is the lowest bit
    pid = Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1] ?? 1);
  }
  return false;
}
