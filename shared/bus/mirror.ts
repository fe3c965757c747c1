/** A JetStream key-value bucket, held whole in memory by a watch, so that reading it touches no network. */
import type { Bucket as Kv, KvEntry } from "@nats-io/kv";
import { SandgateError } from "../errors.ts";
import type { Check } from "../schemas/validate.ts";
import { inBackground } from "../util/background.ts";
import type { Logger } from "../util/log.ts";
import { backoffMs, Condition, retry } from "../waiting.ts";
import { type BucketOptions, BucketWriter, isValue, openBucket } from "./kv.ts";
import { type Bus, decodeJson } from "./nats.ts";
import type { Bucket } from "./subjects.ts";

const catchUpMs = 2_000;
const retries = { firstMs: 100, maxMs: 5_000 };

/** A bucket with its whole content in memory. */
export class BucketMirror<T> extends BucketWriter<T> {
  readonly #entries = new Map<string, T>();
  readonly #log: Logger;
  readonly #changed = new Set<(key: string, value: T | undefined) => void>();
  readonly #arrival = new Condition();
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
    bus.onRestored(() => mirror.#followAgain());
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
  #until(revision: number): Promise<boolean> {
    return this.#arrival.until(() => this.#revision >= revision, catchUpMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#generation++;
  }

  async #followAgain(): Promise<void> {
    const followUnlessOver = async (): Promise<void> => {
      if (!this.#stopped && this.bus.connected) await this.#follow();
    };
    await retry(followUnlessOver, (err, attempt) => {
      this.#log.warn({ err }, "watching a bucket failed; trying again");
      return backoffMs(attempt, retries);
    });
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
    })().catch((error) => {
      this.#log.warn({ err: error }, "a bucket watch ended");
      if (generation === this.#generation) return this.#followAgain();
    });
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
    this.#arrival.notify();
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
    for (const listener of this.#changed) inBackground(this.#log, "a change of a bucket was not taken note of", () => listener(key, value));
  }
}
