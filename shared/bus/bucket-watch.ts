/**
 * A watch of a bucket that begins with all that is stored in it. In a cluster the server that serves the watch may be behind the
 * one that leads the bucket. So what it brings first is held back until it includes all that the leader had when the watch began:
 * whoever holds a newer state in memory never goes back to an older one.
 */
import type { JetStreamManager, MsgRequest } from "@nats-io/jetstream";
import type { Bucket as Kv, KvEntry } from "@nats-io/kv";
import type { QueuedIterator } from "@nats-io/transport-node";

/** How far the leader is. */
export interface Position {
  /** When the stream behind the bucket was made: the revisions of another one say nothing about this one. */
  readonly created: string;
  readonly revision: number;
  /** How many servers are to have it. */
  readonly copies: number;
}

export async function positionOf(kv: Kv): Promise<Position> {
  const { created, state, config } = (await kv.status()).streamInfo;
  return { created, revision: state.last_seq, copies: config.num_replicas };
}

interface Parts {
  readonly kv: Kv;
  readonly jsm: JetStreamManager;
  /** What the watch must include before anything is taken from it. */
  readonly revision: number;
  /** Takes all that is stored, marks of deletions included. */
  readonly present: (entries: ReadonlyMap<string, KvEntry>, revision: number) => void;
  /** Takes a later change. */
  readonly change: (entry: KvEntry) => void;
  /** Something has come, also of what is held back. */
  readonly progress: () => void;
}

export class BucketWatch {
  readonly #parts: Parts;
  readonly #entries: QueuedIterator<KvEntry>;
  readonly #view = new Map<string, KvEntry>();
  readonly #ready = Promise.withResolvers<void>();
  /** The last change that has come. */
  #revision = 0;
  #isReady = false;
  #isStopped = false;
  /** Resolves when the watch has ended, with the reason if it was not stopped. */
  readonly ended: Promise<unknown>;

  private constructor(parts: Parts, entries: QueuedIterator<KvEntry>) {
    this.#parts = parts;
    this.#entries = entries;
    this.#ready.promise.catch(() => {}); // It is waited for in `begin`.
    this.ended = this.#take().then(
      () => new Error("the watch has ended"),
      (error: unknown) => error,
    );
    void this.ended.then((error) => this.#ready.reject(error));
  }

  /** Resolves when all that is stored was taken. @param started is told of the watch before that */
  static async begin(parts: Parts, started: (watch: BucketWatch) => void): Promise<void> {
    const watch = new BucketWatch(parts, await parts.kv.watch());
    started(watch);
    await watch.#finishIfComplete();
    await watch.#ready.promise;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Nothing is taken any more. */
  stop(): void {
    this.#isStopped = true;
    this.#entries.stop();
  }

  async #take(): Promise<void> {
    for await (const entry of this.#entries) {
      if (this.#isStopped) return;
      this.#revision = entry.revision;
      this.#parts.progress();
      if (this.#isReady) this.#parts.change(entry);
      else {
        this.#view.set(entry.key, entry);
        // While others write, servers (2.9 at least) may count one too many as still to come, for as long as the watch lives.
        if (entry.delta === 0 || entry.revision >= this.#parts.revision) await this.#finishIfComplete();
      }
    }
  }

  async #finishIfComplete(): Promise<void> {
    const upTo = this.#revision;
    if (!(await this.#includesAll(upTo)) || this.#isReady || this.#isStopped) return;
    this.#isReady = true;
    this.#parts.present(this.#view, Math.max(this.#revision, this.#parts.revision));
    this.#view.clear();
    this.#ready.resolve();
  }

  /** Whether nothing is stored between what has come and what must come: the last change may be one that left nothing to bring. */
  async #includesAll(upTo: number): Promise<boolean> {
    const { kv, jsm, revision } = this.#parts;
    if (upTo >= revision) return true;
    // The library's declared type has less than the server takes.
    const asked: MsgRequest & { next_by_subj: string } = { seq: upTo + 1, next_by_subj: `$KV.${kv.bucket}.>` };
    const next = await jsm.streams.getMessage(kv.stream, asked);
    return next === null || next.seq > revision;
  }
}
