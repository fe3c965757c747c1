/** A JetStream key-value bucket, held whole in memory by a watch, so that reading it touches no network. */
import { JetStreamApiError, jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { type Bucket as Kv, type KvEntry, Kvm } from "@nats-io/kv";
import { SandgateError } from "./errors.ts";
import type { Logger } from "./log.ts";
import { type Bus, decodeJson, encodeJson } from "./nats.ts";
import type { Check } from "./schemas/validate.ts";
import type { Bucket } from "./subjects.ts";

/** The server's code for a write that names another revision than the last. */
const wrongLastSequence = 10_071;
const changeAttemptsMax = 20;
const catchUpMs = 2_000;

/** How a bucket is made: its entries vanish `ttlMs` after they were written, or never. */
interface BucketOptions {
  readonly ttlMs?: number;
}

/** Opens or makes a bucket that is kept on disk. */
async function openBucket(bus: Bus, name: Bucket, { ttlMs }: BucketOptions = {}): Promise<Kv> {
  // The library's declared type has less than the class that it returns.
  return (await new Kvm(jetstream(bus.connection)).create(name, { history: 1, storage: StorageType.File, ...(ttlMs ? { ttl: ttlMs } : {}) })) as Kv;
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
    this.check = check;
  }

  static async open<T>(bus: Bus, name: Bucket, check: Check<T>, options?: BucketOptions): Promise<BucketWriter<T>> {
    return new BucketWriter(bus, await openBucket(bus, name, options), check);
  }

  /** @throws {SandgateError} `unavailable` when the bus does not confirm the change. */
  async put(key: string, value: T): Promise<void> {
    await this.stored(await this.bus.whileConnected(() => this.kv.put(key, encodeJson(value))));
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
      const { streams } = await jetstreamManager(this.bus.connection);
      const { config, state } = (await this.kv.status()).streamInfo;
      const marks: number[] = [];
      for await (const entry of await this.kv.history()) {
        if (!isValue(entry) && entry.created.getTime() < Date.now() - ageMs) marks.push(entry.revision);
        // While others write without a pause it has no end of its own.
        if (entry.revision >= state.last_seq) break;
      }
      // One by one, for the same reason as above; one that a new value has replaced is gone already.
      for (const mark of marks) await streams.deleteMessage(config.name, mark, false).catch(ignoreMissing);
    });
  }

  /** Writes an entry that is not there; false when it is there already. */
  async create(key: string, value: T): Promise<boolean> {
    return (await this.#unlessChanged(() => this.kv.create(key, encodeJson(value)))) !== undefined;
  }

  /** Replaces what `revision` names; false when somebody else has changed it since. */
  async replace(key: string, value: T, revision: number): Promise<boolean> {
    return (await this.#unlessChanged(() => this.kv.update(key, encodeJson(value), revision))) !== undefined;
  }

  /**
   * Changes an entry so that no other change of it is lost: reads it, and writes what `change` makes of it unless it
   * was changed meanwhile, else tries again. Returns what is stored then; undefined where there is no such entry.
   */
  async change(key: string, change: (value: T) => T): Promise<T | undefined> {
    for (let attempt = 0; attempt < changeAttemptsMax; attempt++) {
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

  /** Undefined when the server says that the entry is not at the revision named. */
  async #unlessChanged(write: () => Promise<number>): Promise<number | undefined> {
    const revision = await this.bus.whileConnected(async () => {
      try {
        return await write();
      } catch (error) {
        if (error instanceof JetStreamApiError && error.code === wrongLastSequence) return undefined;
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

const isValue = (entry: KvEntry): boolean => entry.operation === "PUT";

/** A bucket with its whole content in memory. */
export class BucketMirror<T> extends BucketWriter<T> {
  readonly #entries = new Map<string, T>();
  readonly #log: Logger;
  readonly #changed = new Set<(key: string, value: T | undefined) => void>();
  readonly #waiting = new Set<() => void>();
  #generation = 0;
  #stopped = false;
  /** The last change of the bucket that has arrived here. */
  #revision = 0;

  private constructor(bus: Bus, kv: Kv, check: Check<T>, log: Logger) {
    super(bus, kv, check);
    this.#log = log;
  }

  /** Opens the bucket and resolves once its present content is in memory. Watches again after every reconnect. */
  static async watch<T>(bus: Bus, name: Bucket, check: Check<T>, log: Logger, options?: BucketOptions): Promise<BucketMirror<T>> {
    const mirror = new BucketMirror(bus, await openBucket(bus, name, options), check, log);
    await mirror.#follow();
    bus.onRestored(() => void mirror.#followAgain());
    return mirror;
  }

  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  values(): IterableIterator<T> {
    return this.#entries.values();
  }

  entries(): IterableIterator<[string, T]> {
    return this.#entries.entries();
  }

  /** From memory, else from the server: a miss may only mean that the news has not arrived yet. */
  async find(key: string): Promise<T | undefined> {
    return this.#entries.get(key) ?? (await this.read(key));
  }

  /** Calls back on every change; `undefined` means deleted. */
  onChange(listener: (key: string, value: T | undefined) => void): void {
    this.#changed.add(listener);
  }

  /** Takes over what the entry's owner has just said, before the watch brings it; `undefined` means gone. */
  note(key: string, value: T | undefined): void {
    this.#apply(key, value);
  }

  /**
   * Resolves when every change that was stored before this call is in memory.
   *
   * @throws {SandgateError} `unavailable` after two seconds without that.
   */
  async caughtUp(): Promise<void> {
    if (!(await this.#until(await this.#lastRevision()))) {
      throw new SandgateError("unavailable", "the gateway is behind with the news of others; try again");
    }
  }

  /**
   * A change of our own is stored: it is in memory as well when this resolves. It comes by the watch, like those of
   * others, so that whoever was last on the server is last in memory.
   */
  protected override async stored(revision?: number): Promise<void> {
    await this.#until(revision ?? (await this.#lastRevision()));
  }

  /** Whether the change has arrived, within two seconds. */
  async #until(revision: number): Promise<boolean> {
    const deadline = Date.now() + catchUpMs;
    while (this.#revision < revision) {
      if (Date.now() >= deadline) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadline - Date.now());
        this.#waiting.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return true;
  }

  stop(): void {
    this.#stopped = true;
    this.#generation++;
  }

  async #followAgain(): Promise<void> {
    for (let delayMs = 100; !this.#stopped && this.bus.connected; delayMs = Math.min(delayMs * 2, 5_000)) {
      try {
        return await this.#follow();
      } catch (error) {
        this.#log.warn({ err: error }, "watching a bucket failed; trying again");
        await new Promise((resolve) => setTimeout(resolve, delayMs));
      }
    }
  }

  async #follow(): Promise<void> {
    const generation = ++this.#generation;
    const seen = new Set<string>();
    const ready = Promise.withResolvers<void>();
    // Asked for before: the last change of all may be one that left nothing for the watch to bring.
    const lastRevision = await this.#lastRevision();
    const watch = await this.kv.watch();
    let pending = true;
    const finishInitial = (): void => {
      if (!pending) return;
      pending = false;
      this.#arrived(lastRevision);
      for (const key of [...this.#entries.keys()]) if (!seen.has(key)) this.#apply(key, undefined);
      ready.resolve();
    };
    void (async () => {
      for await (const entry of watch) {
        if (generation !== this.#generation) return void watch.stop();
        if (pending) seen.add(entry.key);
        this.#take(entry);
        this.#arrived(entry.revision);
        if (pending && entry.delta === 0) finishInitial();
      }
    })().catch((error) => this.#log.warn({ err: error }, "a bucket watch ended"));
    if (await this.#isEmpty()) finishInitial();
    await ready.promise;
  }

  async #isEmpty(): Promise<boolean> {
    return (await this.kv.status()).values === 0;
  }

  async #lastRevision(): Promise<number> {
    return this.bus.whileConnected(async () => (await this.kv.status()).streamInfo.state.last_seq);
  }

  #arrived(revision: number): void {
    if (revision <= this.#revision) return;
    this.#revision = revision;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #take(entry: KvEntry): void {
    try {
      this.#apply(entry.key, isValue(entry) ? this.check(decodeJson(entry.value)) : undefined);
    } catch (error) {
      this.#log.error({ err: error, key: entry.key }, "a bucket entry is not valid and is ignored");
    }
  }

  #apply(key: string, value: T | undefined): void {
    if (value === undefined) this.#entries.delete(key);
    else this.#entries.set(key, value);
    for (const listener of this.#changed) listener(key, value);
  }
}
