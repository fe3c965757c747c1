/**
 * Entries of the execution log that are committed together. A transaction for each would wake two threads and the disk in the
 * middle of the next command, and a worker that runs one command after another would wait for them.
 */
import type { LogEntry } from "../../shared/bus/contract/commands.ts";

/** How long an entry waits for others, and for how many. */
const togetherMs = 50;
const entriesMax = 100;

interface Batch {
  readonly entries: LogEntry[];
  readonly committed: PromiseWithResolvers<void>;
  readonly timer: NodeJS.Timeout;
}

export class Batches {
  readonly #commit: (entries: readonly LogEntry[]) => Promise<void>;
  #next: Batch | undefined;
  /** Settles with the latest batch, and so after all before it. */
  #settled: Promise<void> = Promise.resolve();

  /** @param commit begins to commit at once, after what it was called with before */
  constructor(commit: (entries: readonly LogEntry[]) => Promise<void>) {
    this.#commit = commit;
  }

  /** Resolves when the entry is committed; rejects when it could not be. */
  add(entry: LogEntry): Promise<void> {
    this.#next ??= { entries: [], committed: Promise.withResolvers(), timer: setTimeout(() => this.flush(), togetherMs) };
    const { entries, committed } = this.#next;
    entries.push(entry);
    if (entries.length >= entriesMax) void this.flush();
    return committed.promise;
  }

  /** Waits for no more entries. Resolves when all are committed, or could not be. */
  flush(): Promise<void> {
    const batch = this.#next;
    this.#next = undefined;
    if (!batch) return this.#settled;
    clearTimeout(batch.timer);
    const { resolve, reject, promise } = batch.committed;
    this.#commit(batch.entries).then(resolve, reject);
    this.#settled = promise.catch(() => {});
    return this.#settled;
  }
}
