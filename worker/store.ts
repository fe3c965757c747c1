/** The worker's truth on disk (LMDB): sandboxes, the execution log, usage history. */
import { mkdirSync } from "node:fs";
import { constants } from "node:os";
import { type Database, open, type RootDatabase } from "lmdb";
import { SandgateError } from "../shared/errors.ts";
import type { BaseImage, Layer, LogEntry, SandboxEntry, SnapshotEntry } from "../shared/schemas/messages.ts";
import { Facts, type SandboxFacts } from "./facts.ts";

/** A sandbox as its worker keeps it. */
export interface SandboxRecord extends SandboxEntry {
  readonly env_vars: Readonly<Record<string, string>>;
  /** Whether its maker was promised it before it ran; one that nobody knows of is dropped at a restart. */
  readonly acknowledged: boolean;
  readonly container_id?: string;
  /** What a restored sandbox was made from; absent where Podman made its files from an image. */
  readonly root?: RootSource;
}

/** Layers over an image. */
export interface RootSource {
  readonly base: BaseImage;
  /** Topmost first. */
  readonly layers: readonly Layer[];
  /** The image that takes the place of `base`, until it has been looked up. */
  readonly over?: string | undefined;
}

/** A snapshot as the worker that has its layers keeps it. */
export interface SnapshotRecord extends SnapshotEntry {
  /** Its deletion was asked for and is finished whatever happens. */
  readonly deleting?: true;
}

export interface UsageSample {
  readonly at_ms: number;
  readonly cpu_percent: number;
  readonly memory_mb: number;
}

type LogKey = [accountId: string, startedAtMs: number, executionId: string];
type SampleKey = [sandboxId: string, atMs: number];

const { errno } = constants;
const highest = "\uffff";

export class Store {
  readonly #root: RootDatabase;
  readonly #sandboxes: Database<SandboxRecord, string>;
  readonly #executions: Database<LogEntry, LogKey>;
  readonly #samples: Database<UsageSample, SampleKey>;
  readonly #flags: Database<boolean, string>;
  readonly #snapshots: Database<SnapshotRecord, string>;
  readonly #facts: Facts;

  constructor(dir: string) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.#facts = new Facts(`${dir}.facts`);
    this.#root = open({ path: dir, maxDbs: 8 });
    this.#sandboxes = this.#root.openDB({ name: "sandboxes" });
    this.#executions = this.#root.openDB({ name: "executions" });
    this.#samples = this.#root.openDB({ name: "samples" });
    this.#snapshots = this.#root.openDB({ name: "snapshots" });
    this.#flags = this.#root.openDB({ name: "flags" });
  }

  /** Whether an operator has asked that this worker gets no new sandboxes. */
  get cordoned(): boolean {
    return this.#flags.get("cordoned") ?? false;
  }

  /** Resolves when that is on disk. */
  async setCordoned(on: boolean): Promise<void> {
    await this.#durably(this.#flags.put("cordoned", on));
  }

  sandboxes(): SandboxRecord[] {
    return [...this.#sandboxes.getRange()].map(({ value }) => value);
  }

  /** Resolves when the record is on disk. */
  async putSandbox(record: SandboxRecord): Promise<void> {
    await this.#facts.put(record);
    await this.#durably(this.#sandboxes.put(record.id, record));
  }

  /** Removes the record and its usage history. Resolves when that is on disk; the execution log stays. */
  async deleteSandbox(id: string): Promise<void> {
    const keys = [...this.#samples.getKeys({ start: [id, 0], end: [id, Number.MAX_SAFE_INTEGER] })];
    await this.#durably(this.#sandboxes.remove(id), ...keys.map((key) => this.#samples.remove(key)));
    this.#facts.remove(id);
  }

  /** What is known of a sandbox whose record is lost, beside what others know. */
  factsOf(id: string): SandboxFacts {
    return this.#facts.of(id);
  }

  /** Resolves when the entry is committed; an entry with the same execution id and start replaces the former. */
  async putExecution(entry: LogEntry): Promise<void> {
    await this.#executions.put([entry.account_id, entry.started_at_ms, entry.execution_id], entry);
  }

  snapshots(): SnapshotRecord[] {
    return [...this.#snapshots.getRange()].map(({ value }) => value);
  }

  /** Resolves when the record is on disk. */
  async putSnapshot(record: SnapshotRecord): Promise<void> {
    await this.#durably(this.#snapshots.put(record.id, record));
  }

  /** Resolves when the removal is on disk. */
  async deleteSnapshot(id: string): Promise<void> {
    await this.#durably(this.#snapshots.remove(id));
  }

  /** Log entries of an account, newest first, and how many there are beyond the limit. */
  executions(filter: { accountId: string; sandboxId?: string | undefined; fromMs: number; toMs: number; limit: number }): { logs: LogEntry[]; total: number } {
    const logs: LogEntry[] = [];
    let total = 0;
    const newestFirst = { reverse: true, start: [filter.accountId, filter.toMs, highest] as LogKey, end: [filter.accountId, filter.fromMs, ""] as LogKey };
    for (const { value } of this.#executions.getRange(newestFirst)) {
      if (filter.sandboxId && value.sandbox_id !== filter.sandboxId) continue;
      if (total++ < filter.limit) logs.push(value);
    }
    return { logs, total };
  }

  /** Entries of executions that were running when the worker last stopped. */
  unfinishedExecutions(): LogEntry[] {
    const unfinished: LogEntry[] = [];
    // One by one: the whole log may be larger than memory.
    for (const { value } of this.#executions.getRange()) if (value.status === "running") unfinished.push(value);
    return unfinished;
  }

  async putSample(sandboxId: string, sample: UsageSample): Promise<void> {
    await this.#samples.put([sandboxId, sample.at_ms], sample);
  }

  samples(sandboxId: string, fromMs: number, toMs: number): UsageSample[] {
    return [...this.#samples.getRange({ start: [sandboxId, fromMs], end: [sandboxId, toMs + 1] })].map(({ value }) => value);
  }

  /** Forgets log entries and samples from before these times. */
  async expire(executionsBeforeMs: number, samplesBeforeMs: number): Promise<void> {
    const removals: Promise<boolean>[] = [];
    for (const key of this.#executions.getKeys()) if (key[1] < executionsBeforeMs) removals.push(this.#executions.remove(key));
    for (const key of this.#samples.getKeys()) if (key[1] < samplesBeforeMs) removals.push(this.#samples.remove(key));
    await Promise.all(removals);
  }

  /** @throws {SandgateError} `insufficient_storage` when the disk is full; nothing of it is kept then. */
  async #durably(...writes: Promise<unknown>[]): Promise<void> {
    try {
      await Promise.all(writes);
      await this.#root.flushed;
    } catch (cause) {
      if (isFailedCommit(cause)) throw new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
      throw cause;
    }
  }

  async close(): Promise<void> {
    await this.#root.flushed;
    await this.#root.close();
  }
}

/**
 * Whether LMDB could not write a transaction: it says EIO when a part was written and the disk was full then. The same
 * failure comes as a rejection of promises that LMDB keeps to itself, which is no reason to end the process.
 */
export function isFailedCommit(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { message, code, commitError } = error as Error & { code?: unknown; commitError?: unknown };
  if (commitError instanceof Promise) commitError.catch(() => {});
  return message.startsWith("Commit failed") || code === errno.EIO || code === errno.ENOSPC || code === errno.EDQUOT;
}
