/** This worker's entries in the directory that gateways read. Only the worker that owns a sandbox writes its entry. */

import type { SandboxEntry } from "../../shared/bus/messages.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { OwnEntries } from "./entries.ts";
import type { SandboxRecord } from "./store.ts";

export class Directory {
  readonly #bucket: OwnEntries<SandboxEntry>;
  readonly #log: Logger;

  constructor(bucket: OwnEntries<SandboxEntry>, log: Logger) {
    this.#bucket = bucket;
    this.#log = log;
  }

  /** @throws {SandgateError} `unavailable` when the entry could not be stored. */
  async publish(record: SandboxRecord): Promise<void> {
    await this.#bucket.put(record.id, entryOf(record));
  }

  /** @throws {SandgateError} `unavailable` when the removal could not be stored. */
  async withdraw(id: string): Promise<void> {
    await this.#bucket.delete(id);
  }

  /** Removes this worker's entries of sandboxes that are not there (any more). */
  async withdrawUnknown(isKnown: (id: string) => boolean): Promise<void> {
    for (const id of await this.#bucket.ids()) {
      if (isKnown(id)) continue;
      const entry = await this.#bucket.read(id);
      // Asked again: the sandbox may have been made while its entry was read.
      if (!entry || isKnown(id)) continue;
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
