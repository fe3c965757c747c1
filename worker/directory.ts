/** This worker's entries in the directory that gateways read. Only the worker that owns a sandbox writes its entry. */
import type { BucketWriter } from "../shared/kv.ts";
import type { Logger } from "../shared/log.ts";
import type { SandboxEntry } from "../shared/schemas/messages.ts";
import type { SandboxRecord } from "./store.ts";

export class Directory {
  readonly #bucket: BucketWriter<SandboxEntry>;
  readonly #workerId: string;
  readonly #log: Logger;

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
  }

  /** Makes the directory say what the records say: after a start and after the bus was away. */
  async synchronise(records: readonly SandboxRecord[]): Promise<void> {
    const wanted = new Map(records.map((record) => [record.id, record]));
    for (const key of await this.#bucket.keys()) {
      if (wanted.has(key)) continue;
      const entry = await this.#bucket.read(key);
      if (entry?.worker_id !== this.#workerId) continue;
      this.#log.warn({ sandbox: key }, "a directory entry without a sandbox is removed");
      await this.withdraw(key);
    }
    for (const record of wanted.values()) await this.publish(record);
  }
}

/** The part of a record that others may see. */
export function entryOf(record: SandboxRecord): SandboxEntry {
  const { env_vars: _env, acknowledged: _acknowledged, container_id: _container, ...entry } = record;
  return entry;
}
