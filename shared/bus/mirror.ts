/** A JetStream key-value bucket, held whole in memory by a watch, so that reading it touches no network. */
import type { Bucket as Kv, KvEntry } from "@nats-io/kv";
import { SandgateError } from "../errors.ts";
import type { Check } from "../schemas/validate.ts";
import { every, inBackground } from "../util/background.ts";
import type { Logger } from "../util/log.ts";
import { backoffMs, Condition, retry, StallClock } from "../waiting.ts";
import { BucketWatch, positionOf } from "./bucket-watch.ts";
import { openStorage } from "./jetstream.ts";
import { type BucketOptions, BucketWriter, isValue, markNothing, openBucket } from "./kv.ts";
import { decodeJson } from "./messages.ts";
import type { Bus } from "./nats.ts";
import type { Bucket } from "./subjects.ts";

const catchUpMs = 2_000;
/** How often what the server has is compared with what has arrived here. */
const checkMs = 3_000;
/** So long after the last sign of a beginning watch it is given up: the library asks for a consumer that was lost for as long as it takes. */
const followStallMs = 10_000;
const retries = { firstMs: 100, maxMs: 5_000 };

/** @param stallMs so long after its last sign a beginning watch is given up, in place of the usual time */
export interface MirrorOptions extends BucketOptions {
  readonly stallMs?: number;
}

/** A bucket with its whole content in memory. */
export class BucketMirror<T> extends BucketWriter<T> {
  readonly #entries = new Map<string, T>();
  readonly #log: Logger;
  readonly #stallMs: number;
  readonly #changed = new Set<(key: string, value: T | undefined) => void>();
  readonly #arrival = new Condition();
  readonly #stopping = new AbortController();
  readonly #checking: NodeJS.Timeout;
  #watch: BucketWatch | undefined;
  /** While a watch begins in place of one that has ended. */
  #following: Promise<void> | undefined;
  /** Counts the watches that were begun: what one that was given up still brings is older than what the next one has brought. */
  #begun = 0;
  /** The last change of the bucket that has arrived here. */
  #revision = 0;
  /** The stream that it is a revision of. */
  #created = "";

  private constructor(bus: Bus, kv: Kv, check: Check<T>, log: Logger, stallMs: number) {
    super(bus, kv, check);
    this.#log = log;
    this.#stallMs = stallMs;
    this.#checking = every(checkMs, log, "a watch could not be looked after", () => this.#check()).unref();
  }

  /** Opens the bucket and resolves once its present content is in memory. Watches again after every reconnect, and whenever the watch ends or brings nothing any more. */
  static async watch<T>(bus: Bus, name: Bucket, check: Check<T>, log: Logger, options: MirrorOptions = {}): Promise<BucketMirror<T>> {
    const mirror = new BucketMirror(bus, await openBucket(bus, name, options), check, log, options.stallMs ?? followStallMs);
    mirror.#following = mirror.#follow();
    await mirror.#following;
    mirror.#following = undefined;
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
    await this.#catchUp(await this.#lastRevision());
  }

  /**
   * The same beyond doubt, before somebody is told that something is not there. In a cluster, a server that leads no more may not
   * know it for seconds; only what a majority stores tells what there was. That is the mark of the deletion of nothing.
   *
   * @throws {SandgateError} `unavailable` also without a majority.
   */
  async certain(): Promise<void> {
    const { copies, revision } = await this.bus.whileConnected(() => positionOf(this.kv));
    await this.#catchUp(copies > 1 ? await this.bus.whileConnected(() => markNothing(this.bus, this.kv)) : revision);
  }

  async #catchUp(revision: number): Promise<void> {
    if (!(await this.#until(revision))) throw new SandgateError("unavailable", "the gateway is behind with the news of others; try again");
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
    this.#stopping.abort(new SandgateError("unavailable", "the mirror was stopped"));
    clearInterval(this.#checking);
    this.#watch?.stop();
  }

  /** Never throws. While the bus is away there is nothing to watch: when it is back, this is called again. */
  #followAgain(): Promise<void> {
    const isOver = (): boolean => this.#stopping.signal.aborted || !this.bus.connected;
    this.#following ??= retry(
      async () => isOver() || (await this.#follow()),
      (err, attempt) => {
        if (isOver()) return undefined;
        this.#log.warn({ err, bucket: this.kv.bucket }, "watching a bucket failed; trying again");
        return backoffMs(attempt, retries);
      },
      this.#stopping.signal,
    )
      .catch((err: unknown) => this.#log.debug({ err }, "a bucket is not watched while the bus is away"))
      .then(() => {
        this.#following = undefined;
      });
    return this.#following;
  }

  /** The server may lose a watch without a word, for example with its consumer. */
  async #check(): Promise<void> {
    if (this.#following || !this.bus.connected || (await this.#until(await this.#lastRevision()))) return;
    this.#log.warn({ bucket: this.kv.bucket }, "the watch of a bucket brings nothing any more; it begins again");
    await this.#followAgain();
  }

  /** Begins a watch in place of the one before; resolves when the bucket's present content is in memory. @throws {SandgateError} `unavailable`, also when nothing comes any more */
  async #follow(): Promise<void> {
    const stalled = Promise.withResolvers<never>();
    const clock = new StallClock(this.#stallMs, () => stalled.reject(new SandgateError("unavailable", "the watch of a bucket does not begin")));
    await clock.during(Promise.race([this.bus.whileConnected(() => this.#begin(() => clock.progress())), stalled.promise]));
  }

  async #begin(progress: () => void): Promise<void> {
    const number = ++this.#begun;
    const isCurrent = (): boolean => number === this.#begun;
    this.#watch?.stop();
    const { created, revision } = await positionOf(this.kv);
    const { jsm } = await openStorage(this.bus);
    if (!isCurrent()) return;
    if (created !== this.#created) this.#revision = 0;
    // A server that leads no more, and does not know it yet.
    else if (revision < this.#revision) throw new SandgateError("unavailable", "the storage is behind");
    this.#created = created;
    const parts = {
      ...{ kv: this.kv, jsm, revision, progress },
      present: (entries: ReadonlyMap<string, KvEntry>, upTo: number) => this.#present(entries, upTo),
      change: (entry: KvEntry) => {
        this.#take(entry);
        this.#arrived(entry.revision);
      },
    };
    await BucketWatch.begin(parts, (watch) => {
      if (!isCurrent()) return watch.stop();
      this.#watch = watch;
      inBackground(this.#log, "a bucket is not watched any more", async () => {
        const error = await watch.ended;
        if (watch === this.#watch && watch.isReady) await this.#ended(error);
      });
    });
  }

  #present(entries: ReadonlyMap<string, KvEntry>, revision: number): void {
    for (const key of [...this.#entries.keys()]) if (!entries.has(key)) this.#apply(key, undefined);
    for (const entry of entries.values()) this.#take(entry);
    this.#arrived(revision);
  }

  async #ended(err: unknown): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#log.warn({ err, bucket: this.kv.bucket }, "the watch of a bucket ended; it begins again");
    await this.#followAgain();
  }

  async #lastRevision(): Promise<number> {
    return (await this.bus.whileConnected(() => positionOf(this.kv))).revision;
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
