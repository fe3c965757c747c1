/** Talks to the thread that reads what sandboxes hold, and replaces the thread when it fails. */
import { Worker } from "node:worker_threads";
import { programFile } from "../../shared/programs.mjs";
import type { Holdings, HoldingsRequest } from "./holdings.ts";
import type { ThreadReply, ThreadRequest } from "./holdings-thread.ts";

/** The thread keeps little, so a young generation as large as the main thread's would be wasted. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 };

export class HoldingsReader {
  readonly #pending = new Map<number, PromiseWithResolvers<Holdings | undefined>>();
  #thread: Worker | undefined;
  #serial = 0;

  /** Resolves to undefined when the holdings could not be read. */
  read(request: HoldingsRequest): Promise<Holdings | undefined> {
    const id = this.#serial++;
    const pending = Promise.withResolvers<Holdings | undefined>();
    this.#pending.set(id, pending);
    this.#thread ??= this.#start();
    this.#thread.postMessage({ ...request, id } satisfies ThreadRequest);
    return pending.promise;
  }

  async stop(): Promise<void> {
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(programFile("worker/usage/holdings-thread.ts"), { resourceLimits });
    thread.unref();
    thread.on("message", ({ id, holdings }: ThreadReply) => this.#settle(id, holdings));
    // Includes a thread that ran out of memory. Its requests are repeated with the next look.
    thread.once("error", () => this.#ended(thread));
    thread.once("exit", () => this.#ended(thread));
    return thread;
  }

  #settle(id: number, holdings: Holdings | undefined): void {
    this.#pending.get(id)?.resolve(holdings);
    this.#pending.delete(id);
  }

  #ended(thread: Worker): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    for (const id of [...this.#pending.keys()]) this.#settle(id, undefined);
  }
}
