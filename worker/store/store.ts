/** The worker's durable state in LMDB: sandboxes, snapshots and usage history. The execution log is a part of its own. */
import { mkdirSync } from "node:fs";
import { constants } from "node:os";
import { type Database, open, type RootDatabase } from "lmdb";
import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { yielding } from "../../shared/util/yielding.ts";
import { ExecutionLog, type LogOptions } from "../log/execution-log.ts";
import { Facts, type SandboxFacts } from "./facts.ts";
import type { SandboxRecord, UsageSample } from "./records.ts";

type SampleKey = [sandboxId: string, atMs: number];

const { errno } = constants;
/** As LMDB's package and as Node.js reports them. */
const failures: readonly unknown[] = [errno.EIO, errno.ENOSPC, errno.EDQUOT, "ENOSPC", "EDQUOT"];
/** More than are used. */
export const databasesMax = 16;
/** LMDB's own name for the file in the folder of the records. */
export const dataFile = "data.mdb";
/** Samples removed in one transaction. */
const stepSamples = 500;
const unlimited: LogOptions = { sandboxBytes: Number.POSITIVE_INFINITY, accountBytes: Number.POSITIVE_INFINITY, hasRoom: () => true };

export class Store {
  /** The execution log. */
  readonly log: ExecutionLog;
  readonly #root: RootDatabase;
  readonly #sandboxes: Database<SandboxRecord, string>;
  readonly #samples: Database<UsageSample, SampleKey>;
  readonly #flags: Database<boolean, string>;
  readonly #snapshots: Database<SnapshotEntry, string>;
  readonly #facts: Facts;
  #closing = false;

  constructor(dir: string, logOptions: Partial<LogOptions> = {}) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.#facts = new Facts(`${dir}.facts`);
    // With it, a transaction is committed before it is on disk; if the disk then fails, nobody is told, and who waits for that waits for ever.
    this.#root = open({ path: dir, maxDbs: databasesMax, overlappingSync: false });
    this.#sandboxes = this.#root.openDB({ name: "sandboxes" });
    this.log = new ExecutionLog(this.#root, { ...unlimited, ...logOptions });
    this.#samples = this.#root.openDB({ name: "samples" });
    this.#snapshots = this.#root.openDB({ name: "snapshots" });
    this.#flags = this.#root.openDB({ name: "flags" });
  }

  /** Whether an operator has cordoned this worker, so that it accepts no new sandboxes. */
  get cordoned(): boolean {
    return this.#flags.get("cordoned") ?? false;
  }

  /** Resolves when the change is on disk. */
  async setCordoned(on: boolean): Promise<void> {
    await this.#durably(this.#flags.put("cordoned", on));
  }

  sandboxes(): SandboxRecord[] {
    return [...this.#sandboxes.getRange()].map(({ value }) => value);
  }

  /** Does the first part of `putSandbox` ahead. */
  async putFacts(record: SandboxRecord): Promise<void> {
    await this.#durably(this.#facts.put(record));
  }

  /** Resolves when the record is on disk. */
  async putSandbox(record: SandboxRecord): Promise<void> {
    await this.putFacts(record);
    try {
      await this.#durably(this.#sandboxes.put(record.id, record));
    } catch (error) {
      if (!this.#sandboxes.doesExist(record.id)) this.#facts.remove(record.id);
      throw error;
    }
  }

  /** Removes the record. Resolves when that is on disk and the usage history is gone; the execution log stays. */
  async deleteSandbox(id: string): Promise<void> {
    await this.#durably(this.#sandboxes.remove(id));
    this.#facts.remove(id);
    await this.#removeSamples(id, Number.MAX_SAFE_INTEGER);
  }

  /** What the worker still knows about a sandbox whose record is lost, beyond its directory entry; undefined if that is damaged as well. */
  factsOf(id: string): SandboxFacts | undefined {
    return this.#facts.of(id);
  }

  hasFactsOf(id: string): boolean {
    return this.#facts.has(id);
  }

  /** Removes what `putFacts` has stored for sandboxes that have no record. Before any is made, and once lost records are rebuilt. */
  removeStrayFacts(): void {
    this.#facts.retain(this.#sandboxes.getKeys());
  }

  snapshots(): SnapshotEntry[] {
    return [...this.#snapshots.getRange()].map(({ value }) => withoutFlag(value));
  }

  /** Resolves when the record is on disk. */
  async putSnapshot(record: SnapshotEntry): Promise<void> {
    await this.#durably(this.#snapshots.put(record.id, record));
  }

  /** Resolves when the removal is on disk. */
  async deleteSnapshot(id: string): Promise<void> {
    await this.#durably(this.#snapshots.remove(id));
  }

  async putSample(sandboxId: string, sample: UsageSample): Promise<void> {
    await this.#samples.put([sandboxId, sample.at_ms], sample);
  }

  /** Oldest first, both ends included. */
  async samples(sandboxId: string, fromMs: number, toMs: number): Promise<UsageSample[]> {
    const samples: UsageSample[] = [];
    for await (const { value } of yielding(this.#samples.getRange({ start: [sandboxId, fromMs], end: [sandboxId, toMs + 1] }))) samples.push(value);
    return samples;
  }

  /** Removes samples taken before `beforeMs`. */
  async expireSamples(beforeMs: number): Promise<void> {
    for await (const sandboxId of yielding(this.#sampled())) await this.#removeSamples(sandboxId, beforeMs);
  }

  /** Everything that is stored, to check that it can be read. */
  *entries(): Generator<unknown> {
    for (const name of this.#root.getKeys()) {
      if (typeof name === "string") yield* this.#root.openDB({ name }).getRange();
    }
  }

  /** The ids of sandboxes that have samples, even without a record, found without reading the samples. */
  *#sampled(): Generator<string> {
    for (let last = ""; ; ) {
      const [next] = this.#samples.getKeys({ start: [last, Number.MAX_SAFE_INTEGER], limit: 1 });
      if (!next) return;
      [last] = next;
      yield last;
    }
  }

  async #removeSamples(sandboxId: string, beforeMs: number): Promise<void> {
    const old = { start: [sandboxId, 0] as SampleKey, end: [sandboxId, beforeMs] as SampleKey, limit: stepSamples };
    const step = (): number => {
      const keys = [...this.#samples.getKeys(old)];
      for (const key of keys) this.#samples.remove(key);
      return keys.length;
    };
    while (!this.#closing && (await this.#durably(this.#root.transaction(step))) === stepSamples);
  }

  /** Resolves when the write is on disk. @throws {SandgateError} `insufficient_storage` when the disk is full; nothing of the write is kept then. */
  async #durably<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (cause) {
      if (isFailedWrite(cause)) throw new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
      throw cause;
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.log.close();
    await this.#root.flushed;
    await this.#root.close();
  }
}

/** Version 0.1 marked deletions in progress by a flag beside the state. */
function withoutFlag({ deleting, ...record }: SnapshotEntry & { readonly deleting?: true }): SnapshotEntry {
  return deleting ? { ...record, status: "deleting" } : record;
}

/**
 * Whether there was no room for a file, or LMDB could not write a transaction. It reports EIO when the disk was full after a part was written. LMDB also
 * rejects an internal promise with the same error, which is handled here.
 */
function isFailedWrite(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { message, code, commitError } = error as Error & { code?: unknown; commitError?: unknown };
  if (commitError instanceof Promise) commitError.catch(() => {});
  return message.startsWith("Commit failed") || failures.includes(code);
}
