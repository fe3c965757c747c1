/** JetStream key-value buckets: what is stored in them is on disk before a call here resolves. */
import { JetStreamApiError, StorageType } from "@nats-io/jetstream";
import { type Bucket as Kv, type KvEntry, Kvm } from "@nats-io/kv";
import { headers } from "@nats-io/transport-node";
import { SandgateError } from "../errors.ts";
import type { Check } from "../schemas/validate.ts";
import { pause } from "../waiting.ts";
import { isApiError } from "./failures.ts";
import { makingStream, openStorage, setBytesMax } from "./jetstream.ts";
import { asDefect, decodeJson, encodeJson } from "./messages.ts";
import type { Bus } from "./nats.ts";
import { type Bucket, bucketBytesMax, bucketStream, bucketSubject } from "./subjects.ts";

const changeAttemptsMax = 20;
const changePauseMs = 50;

/** How a bucket is made: its entries vanish `ttlMs` after they were written, or never. */
export interface BucketOptions {
  readonly ttlMs?: number;
}

/**
 * Opens or makes a bucket that is kept on disk. What is read from it comes from the server that leads it: in a cluster any copy would answer a
 * worker's kind of read (`bind`), also one that is behind.
 */
export async function openBucket(bus: Bus, name: Bucket, { ttlMs }: BucketOptions = {}): Promise<Kv> {
  const { js, jsm } = await openStorage(bus);
  const options = { history: 1, storage: StorageType.File, max_bytes: bucketBytesMax[name], ...(ttlMs ? { ttl: ttlMs } : {}) };
  await makingStream(() => new Kvm(js).create(name, options));
  await setBytesMax(jsm, (await jsm.streams.info(bucketStream(name))).config, bucketBytesMax[name]);
  // The library's declared type has less than the class that it returns.
  return (await new Kvm(js).open(name, { allow_direct: false })) as Kv;
}

/** A value, and the revision that a change of it must name. */
export interface Versioned<T> {
  readonly value: T;
  readonly revision: number;
}

/** Write access to a bucket. Every method resolves once the server has stored the change. */
export class BucketWriter<T> {
  protected readonly bus: Bus;
  protected readonly kv: Kv;
  protected readonly check: Check<T>;

  protected constructor(bus: Bus, kv: Kv, check: Check<T>) {
    this.bus = bus;
    this.kv = kv;
    this.check = asDefect(check, "an entry of a bucket");
  }

  static async open<T>(bus: Bus, name: Bucket, check: Check<T>, options?: BucketOptions): Promise<BucketWriter<T>> {
    return new BucketWriter(bus, await openBucket(bus, name, options), check);
  }

  /**
   * Opens a bucket that somebody else makes, with reads that a worker may do. In a cluster they may be of a copy that is behind:
   * only a write that names the revision it replaces shows that what was read still holds.
   */
  static async bind<T>(bus: Bus, name: Bucket, check: Check<T>): Promise<BucketWriter<T>> {
    const { js } = await openStorage(bus);
    return new BucketWriter(bus, (await new Kvm(js).open(name, { allow_direct: true })) as Kv, check);
  }

  /** @throws {SandgateError} `unavailable` when the bus does not confirm the change, `payload_too_large`. */
  async put(key: string, value: T): Promise<void> {
    const record = this.#encoded(value);
    await this.stored(await this.bus.whileConnected(() => this.kv.put(key, record)));
  }

  /** What a subclass does when a change is stored; without a revision, the change was a deletion. */
  protected async stored(_revision?: number): Promise<void> {}

  /**
   * Leaves a mark in place of the value. Not the library's `purge`: on a rollup the server (2.9 at least) moves watches on
   * past changes of other keys that they have not seen yet.
   *
   * @throws {SandgateError} `unavailable` when the bus does not confirm the change.
   */
  async delete(key: string): Promise<void> {
    await this.bus.whileConnected(() => this.kv.delete(key));
    await this.stored();
  }

  /**
   * Makes the server forget that keys were deleted. Until then it keeps a mark of each for those who watch;
   * after `ageMs` everybody has seen it, or begins anew because the connection was lost.
   */
  async forgetDeleted(ageMs: number): Promise<void> {
    await this.bus.whileConnected(async () => {
      const { streams } = (await openStorage(this.bus)).jsm;
      const { config, state } = (await this.kv.status()).streamInfo;
      const marks: number[] = [];
      for await (const entry of await this.kv.history({ headers_only: true })) {
        if (!isValue(entry) && entry.created.getTime() < Date.now() - ageMs) marks.push(entry.revision);
        // While others write without a pause it has no end of its own.
        if (entry.revision >= state.last_seq) break;
      }
      // One by one, for the same reason as above; one that a new value has replaced is gone already.
      for (const mark of marks) await streams.deleteMessage(config.name, mark, false).catch(ignoreMissing);
    });
  }

  /** Writes an entry that is not there. @returns its revision; undefined when it is there already */
  async create(key: string, value: T): Promise<number | undefined> {
    const record = this.#encoded(value);
    return this.#unlessChanged(() => this.kv.create(key, record));
  }

  /** Replaces what `revision` names. @returns the new revision; undefined when somebody else has changed it since */
  async replace(key: string, value: T, revision: number): Promise<number | undefined> {
    const record = this.#encoded(value);
    return this.#unlessChanged(() => this.kv.update(key, record, revision));
  }

  /**
   * Changes an entry so that no other change of it is lost: reads it, and writes what `change` makes of it unless it
   * was changed meanwhile, else tries again. Returns what is stored then; undefined where there is no such entry.
   */
  async change(key: string, change: (value: T) => T): Promise<T | undefined> {
    for (let attempt = 0; attempt < changeAttemptsMax; attempt++) {
      if (attempt > 0) await pause(changePauseMs * Math.random());
      const found = await this.readVersion(key);
      if (!found) return undefined;
      const value = change(found.value);
      if (await this.replace(key, value, found.revision)) return value;
    }
    throw new SandgateError("unavailable", "the record is being changed by others; try again");
  }

  /** Reads past the memory of a mirror, for a key that another process has just written. */
  async read(key: string): Promise<T | undefined> {
    return (await this.readVersion(key))?.value;
  }

  async readVersion(key: string): Promise<Versioned<T> | undefined> {
    const entry = await this.bus.whileConnected(() => this.kv.get(key));
    return entry && isValue(entry) ? { value: this.check(decodeJson(entry.value)), revision: entry.revision } : undefined;
  }

  /** @throws {SandgateError} `payload_too_large`. */
  #encoded(value: T): Uint8Array {
    const record = encodeJson(value);
    this.bus.refuseTooLarge("the record", record);
    return record;
  }

  /** Undefined when the server says that the entry is not at the revision named. */
  async #unlessChanged(write: () => Promise<number>): Promise<number | undefined> {
    const revision = await this.bus.whileConnected(async () => {
      try {
        return await write();
      } catch (error) {
        if (isApiError(error, "wrongLastSequence")) return undefined;
        throw error;
      }
    });
    if (revision !== undefined) await this.stored(revision);
    return revision;
  }

  /** All keys of the bucket. */
  async keys(): Promise<string[]> {
    return this.bus.whileConnected(async () => {
      const keys: string[] = [];
      for await (const key of await this.kv.keys()) keys.push(key);
      return keys;
    });
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof JetStreamApiError)) throw error;
}

/** Stores the mark of the deletion of a key that there never is. @returns its revision, once a majority of the servers has it */
export async function markNothing(bus: Bus, { bucket }: Kv): Promise<number> {
  const { js } = await openStorage(bus);
  const marked = headers();
  marked.set("KV-Operation", "DEL");
  return (await js.publish(bucketSubject(bucket as Bucket, "nothing"), undefined, { headers: marked })).seq;
}

/** Whether an entry is a value, and not the mark of a deletion. */
export const isValue = (entry: KvEntry): boolean => entry.operation === "PUT";
