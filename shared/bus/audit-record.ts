/** The audit record: a stream of who changed what, which gateways write and operators read. It is bounded in every direction. */
import { DiscardPolicy, type JetStreamClient, type JetStreamManager, RetentionPolicy, StorageType, type StoredMsg } from "@nats-io/jetstream";
import { type AuditEntry, AuditRecordEntry } from "../schemas/admin/audit.ts";
import { checker } from "../schemas/validate.ts";
import { inBackground } from "../util/background.ts";
import type { Logger } from "../util/log.ts";
import { retry, within } from "../waiting.ts";
import { unless } from "./failures.ts";
import { makingStream, openStorage, refusedForRoom } from "./jetstream.ts";
import { asDefect, decodeJson, encodeJson } from "./messages.ts";
import type { Bus } from "./nats.ts";
import { auditBytesMax, auditEntriesPerCaller, auditSubjects } from "./subjects.ts";

const dayNs = 86_400 * 1_000_000_000;
/** Entries in memory while the server cannot be reached: about half a megabyte. */
const waitingMax = 1_000;
const retryMs = 1_000;
const stopMs = 5_000;
/** Messages asked for at the same time, and how many are looked at for one page. */
const windowSize = 100;
const lookedAtMax = 5_000;

const checkEntry = asDefect(checker(AuditRecordEntry), "an entry of the audit record");

/** How much is kept; what is older makes room. */
export interface AuditBounds {
  readonly days: number;
  readonly bytesMax?: number;
  readonly entriesPerCaller?: number;
}

/** Which entries are wanted, newest first. */
export interface AuditSearch {
  readonly isWanted: (entry: AuditRecordEntry) => boolean;
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  /** Only entries with a smaller sequence. */
  readonly before?: number | undefined;
  readonly limit: number;
}

/** Entries, and the `before` of the next search unless there are no more. */
export interface AuditFound {
  readonly entries: AuditEntry[];
  readonly next?: number;
}

export class AuditRecord {
  readonly #bus: Bus;
  readonly #log: Logger;
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  readonly #waiting: AuditRecordEntry[] = [];
  readonly #stopped = new AbortController();
  #storing: Promise<void> | undefined;
  #lost = 0;

  private constructor(bus: Bus, log: Logger, { js, jsm }: { js: JetStreamClient; jsm: JetStreamManager }) {
    [this.#bus, this.#log, this.#js, this.#jsm] = [bus, log, js, jsm];
  }

  /** Makes the stream, or gives the one that is there the bounds that are set. */
  static async open(bus: Bus, bounds: AuditBounds, log: Logger): Promise<AuditRecord> {
    const storage = await openStorage(bus);
    await bus.whileConnected(() => makeStream(storage.jsm, bounds));
    return new AuditRecord(bus, log, storage);
  }

  /** How many entries are not in the record because the server could not be reached for too long. */
  get lost(): number {
    return this.#lost;
  }

  /** Records an entry in the background, in the order of the calls. Never throws. */
  note(entry: AuditRecordEntry): void {
    if (this.#waiting.length >= waitingMax) return this.#lose(1);
    this.#waiting.push(entry);
    if (this.#storing) return;
    this.#storing = this.#storeAll().finally(() => {
      this.#storing = undefined;
    });
    inBackground(this.#log, "the audit record is not written", () => this.#storing);
  }

  /** Waits a little for what is not stored yet. */
  async stop(): Promise<void> {
    if (this.#storing) await within(this.#storing, stopMs);
    this.#stopped.abort(new Error("the gateway has stopped"));
    if (this.#waiting.length > 0) this.#lose(this.#waiting.length);
  }

  /** Entries that are wanted, newest first; fewer than the limit when many others lie between them. @throws {SandgateError} `unavailable` */
  search({ isWanted, fromMs, before, limit }: AuditSearch): Promise<AuditFound> {
    return this.#bus.whileConnected(async () => {
      const { state } = await this.#jsm.streams.info(auditSubjects.stream);
      const first = Math.max(1, state.first_seq);
      const entries: AuditEntry[] = [];
      let top = Math.min(state.last_seq, (before ?? Number.POSITIVE_INFINITY) - 1);
      for (let lookedAt = 0; top >= first && lookedAt < lookedAtMax; lookedAt += windowSize) {
        const bottom = Math.max(first, top - windowSize + 1);
        const found = await this.#between(bottom, top);
        for (const { seq, time, data } of found) {
          // Nothing is stored before it has happened.
          if (time.getTime() < fromMs) return { entries };
          const entry = checkEntry(decodeJson(data));
          if (isWanted(entry)) entries.push({ sequence: seq, ...entry });
          if (entries.length === limit) return { entries, ...(seq > first ? { next: seq } : {}) };
        }
        top = found.length > 0 ? bottom - 1 : await this.#below(bottom, first);
      }
      return { entries, ...(top >= first ? { next: top + 1 } : {}) };
    });
  }

  /** The messages of these numbers that are there, newest first. */
  async #between(bottom: number, top: number): Promise<StoredMsg[]> {
    const numbers = Array.from({ length: top - bottom + 1 }, (_, index) => top - index);
    const found = await Promise.all(numbers.map((seq) => this.#message({ seq })));
    return found.filter((message) => message !== null);
  }

  /**
   * A number below `bottom` that has a message at most a window further down, so that a long gap is passed in a few steps:
   * entries of a caller who has more than the stream keeps leave gaps. Less than `first` if there is no message.
   */
  async #below(bottom: number, first: number): Promise<number> {
    const next = async (seq: number): Promise<number> => {
      const message = await this.#message({ seq, next_by_subj: auditSubjects.all });
      return message && message.seq < bottom ? message.seq : Number.POSITIVE_INFINITY;
    };
    let [low, high] = [Number.POSITIVE_INFINITY, bottom];
    for (let step = windowSize; low >= bottom; step *= 2) {
      if (high <= first) return first - 1;
      const from = Math.max(first, bottom - step);
      low = await next(from);
      if (low >= bottom) high = from;
    }
    while (high - low > windowSize) {
      const middle = Math.floor((low + high) / 2);
      const found = await next(middle);
      if (found < high) low = found;
      else high = middle;
    }
    return high - 1;
  }

  /** Asks the server that leads the stream: in a cluster, a direct read may be of a copy that lacks what was confirmed last. */
  #message(which: { readonly seq: number; readonly next_by_subj?: string }): Promise<StoredMsg | null> {
    return this.#jsm.streams.getMessage(auditSubjects.stream, which);
  }

  async #storeAll(): Promise<void> {
    for (let entry = this.#waiting[0]; entry && !this.#stopped.signal.aborted; entry = this.#waiting[0]) {
      await this.#store(entry);
      this.#waiting.shift();
    }
  }

  /** Repeated until the server has confirmed it. */
  async #store(entry: AuditRecordEntry): Promise<void> {
    const store = () => this.#bus.whileConnected(() => storeEntry(this.#js, entry));
    const wait = (err: unknown, attempt: number): number => {
      if (attempt === 0) this.#log.warn({ event: "audit_waits", err }, "the audit record cannot be written; still trying");
      return retryMs;
    };
    await retry(store, wait, this.#stopped.signal);
  }

  #lose(count: number): void {
    if (this.#lost === 0) this.#log.error({ event: "audit_lost" }, "entries of the audit record are lost; they are in this log only, as events of type audit");
    this.#lost += count;
  }
}

/** Stores an entry, and drops one that is stored already. */
export async function storeEntry(js: JetStreamClient, entry: AuditRecordEntry): Promise<void> {
  const { account_id, by, request_id } = entry;
  await js.publish(auditSubjects.of(account_id ?? by), encodeJson(entry), { msgID: request_id });
}

/** Old entries make room for new ones, and nobody can remove single ones. */
async function makeStream(jsm: JetStreamManager, { days, bytesMax = auditBytesMax, entriesPerCaller = auditEntriesPerCaller }: AuditBounds): Promise<void> {
  const bounds = { max_bytes: bytesMax, max_msgs_per_subject: entriesPerCaller, max_age: days * dayNs };
  const { stream: name, all } = auditSubjects;
  const found = await jsm.streams.info(name).catch(unless("noStream"));
  if (found) {
    const isSet = Object.entries(bounds).every(([bound, value]) => found.config[bound as keyof typeof bounds] === value);
    if (!isSet) await refusedForRoom(jsm.streams.update(name, { ...found.config, ...bounds }));
    return;
  }
  const kept = { storage: StorageType.File, retention: RetentionPolicy.Limits, discard: DiscardPolicy.Old, deny_delete: true, deny_purge: true };
  await makingStream(() => jsm.streams.add({ name, subjects: [all], ...kept, ...bounds }));
}
