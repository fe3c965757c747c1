/**
 * This worker's entries in a bucket of the directory. The NATS server denies it access to other workers' keys. A process that may
 * have been replaced unseen writes nothing until it knows: it would undo what the other has written.
 */
import type { JetStreamManager } from "@nats-io/jetstream";
import { openStorage } from "../../shared/bus/jetstream.ts";
import { BucketWriter } from "../../shared/bus/kv.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { type Bucket, bucketStream, bucketSubject, entryKey } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Check } from "../../shared/schemas/validate.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Claim } from "../claim.ts";

interface Parts<T> {
  readonly bus: Bus;
  readonly jsm: JetStreamManager;
  readonly bucket: BucketWriter<T>;
  readonly name: Bucket;
  readonly workerId: string;
  readonly claim: Claim;
  readonly log: Logger;
}

/** So long after a write that the bus did not confirm, the entry may still become what was written. */
const unsureMs = 30_000;

export class OwnEntries<T> {
  readonly #parts: Parts<T>;
  #failedAtMs = Number.NEGATIVE_INFINITY;

  private constructor(parts: Parts<T>) {
    this.#parts = parts;
  }

  /** Opens the bucket, which the gateways create. */
  static async open<T>(name: Bucket, check: Check<T>, parts: Omit<Parts<T>, "name" | "jsm" | "bucket">): Promise<OwnEntries<T>> {
    const { jsm } = await openStorage(parts.bus);
    return new OwnEntries({ ...parts, jsm, name, bucket: await BucketWriter.bind(parts.bus, name, check) });
  }

  /** @throws {SandgateError} `unavailable` when the bus does not confirm the change, `insufficient_storage`. The same holds for the methods below. */
  async put(id: string, value: T): Promise<void> {
    await this.#write(() => this.#parts.bucket.put(this.#key(id), value));
  }

  /** Of an object that is gone; always `unavailable` when that is not confirmed. */
  async delete(id: string): Promise<void> {
    await this.#write(() => this.#parts.bucket.delete(this.#key(id))).catch(untold);
  }

  read(id: string): Promise<T | undefined> {
    return this.#parts.bucket.read(this.#key(id));
  }

  async change(id: string, change: (value: T) => T): Promise<T | undefined> {
    return this.#write(() => this.#parts.bucket.change(this.#key(id), change));
  }

  /** The ids of all entries, and of some that were deleted a while ago. */
  async ids(): Promise<string[]> {
    const { bus, jsm, name, workerId } = this.#parts;
    const subjects_filter = bucketSubject(name, entryKey(workerId, "*"));
    const { state } = await bus.whileConnected(() => jsm.streams.info(bucketStream(name), { subjects_filter }));
    return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(subject.lastIndexOf(".") + 1));
  }

  /**
   * Removes the entries of objects that do not exist.
   *
   * @param isKnown is asked again after an entry was read, because the object may have been created meanwhile
   * @param stays whether an entry is there for others
   */
  async withdrawUnknown(isKnown: (id: string) => boolean, stays: (entry: T) => boolean = () => false): Promise<void> {
    for (const id of await this.ids()) {
      if (isKnown(id)) continue;
      const entry = await this.read(id);
      if (!entry || stays(entry) || isKnown(id)) continue;
      this.#parts.log.warn({ id, bucket: this.#parts.name }, "a directory entry without an object is removed");
      await this.delete(id);
    }
  }

  /**
   * Whether entries may not be what was last said, though the connection was never lost: the servers may have been without a
   * leader for a while.
   */
  get areUnsure(): boolean {
    return performance.now() - this.#failedAtMs < unsureMs;
  }

  async #write<R>(write: () => Promise<R>): Promise<R> {
    await this.#parts.claim.sure();
    try {
      return await write();
    } catch (error) {
      this.#failedAtMs = performance.now();
      throw error;
    }
  }

  #key(id: string): string {
    return entryKey(this.#parts.workerId, id);
  }
}

/** For a `catch`, when what was to be told has happened: whoever asked for that must not take it for refused, even where there is no room for the news. */
export function untold(error: unknown): never {
  if (!(error instanceof SandgateError) || error.code !== "insufficient_storage") throw error;
  throw new SandgateError("unavailable", "the worker carries this out, but the service's storage is too full to note it; try again later", { cause: error });
}
