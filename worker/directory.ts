/** This worker's entries in the directory that gateways read. Only the worker that owns a sandbox writes its entry. */
import type { BucketWriter } from "../shared/kv.ts";
import type { Logger } from "../shared/log.ts";
import type { SandboxEntry } from "../shared/schemas/messages.ts";
import type { SandboxRecord } from "./store.ts";

/** The marks that deleted entries leave are removed once in so many deletions, when they are old enough. */
const forgetEvery = 1_000;
const forgetAfterMs = 1_800_000;

export class Directory {
  readonly #bucket: BucketWriter<SandboxEntry>;
  readonly #workerId: string;
  readonly #log: Logger;
  #withdrawn = 0;

  constructor(bucket: BucketWriter<SandboxEntry>, workerId: string, log: Logger) {
    this.#bucket = bucket;
    this.#workerId = workerId;
    this.#log = log;
  }

  /** @throws {SandgateError} `unavailable` when the entry could not be stored. */
  async publish(record: SandboxRecord): Promise<void> {
    await this.#bucket.put(record.id, entryOf(record));
  }

  /** @throws {SandgateError} `unavailable` when the removal could not be stored. */
  async withdraw(id: string): Promise<void> {
    await this.#bucket.delete(id);
    if (++this.#withdrawn % forgetEvery === 0) {
      this.#bucket.forgetDeleted(forgetAfterMs).catch((err) => this.#log.warn({ err }, "marks of deleted directory entries could not be removed"));
    }
  }

  /** Removes this worker's entries of sandboxes that are not there (any more). */
  async withdrawUnknown(isKnown: (id: string) => boolean): Promise<void> {
    for (const id of await this.#bucket.keys()) {
      if (isKnown(id)) continue;
      const entry = await this.#bucket.read(id);
      // Asked again: the sandbox may have been made while its entry was read.
      if (entry?.worker_id !== this.#workerId || isKnown(id)) continue;
      this.#log.warn({ sandbox: id }, "a directory entry without a sandbox is removed");
      await this.withdraw(id);
    }
  }
}

/** The part of a record that others may see. */
export function entryOf(record: SandboxRecord): SandboxEntry {
  const { env_vars: _env, acknowledged: _acknowledged, container_id: _container, root: _root, ...entry } = record;
  return entry;
}
