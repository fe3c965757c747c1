/** The sandboxes of this worker in memory: their records, what runs in them, and the only way to change their state. */
import type { SandboxEntry, SandboxMove } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { type Isolation, isolationOf } from "../../shared/schemas/sandboxes.ts";
import { nextSandboxState, type SandboxEvent } from "../../shared/state/sandbox.ts";
import { KeyedMutex } from "../../shared/util/mutex.ts";
import type { Container } from "../runtime/container/container.ts";
import type { DiskUse } from "../runtime/filesystem/disk.ts";
import { type OwnEntries, untold } from "../store/entries.ts";
import type { SandboxRecord } from "../store/records.ts";
import type { Store } from "../store/store.ts";
import { Departures, GivenAway, isLeaving } from "./departures.ts";

/** Something that runs in a sandbox and can be ended from outside. */
export interface Activity {
  readonly kind: "execution" | "transfer" | "session";
  /** The prefix of file names that exist only while this runs. */
  readonly temporaryName?: string;
  /** Whether this worker has one side of a terminal of the sandbox for it, so that no image of memory can include it. */
  readonly isTied?: boolean;
  /** Ends it and passes the reason to its client. */
  abort(reason: SandgateError): void;
  /** Kills its processes as a limit would: the command appears killed, and the reason is part of its result. */
  killFor(reason: string): void;
}

/** A sandbox, including what is known about it only while it runs. */
export interface LiveSandbox {
  record: SandboxRecord;
  container: Container | undefined;
  readonly activities: Set<Activity>;
  /** The writable layer at the last measurement, plus what uploads have written since. */
  layer: DiskUse;
  /** Files outside the layer at the last look: unlinked, or on other mounts. */
  unlisted: DiskUse;
  /** Whether anything ran since the layer was last measured. */
  diskStale: boolean;
}

/** A sandbox that commands can run in. */
export type RunningSandbox = LiveSandbox & { readonly container: Container };

/** What counts against the sandbox's storage: its own files, and the snapshot layers it was restored from. */
export function storedUse({ record, layer, unlisted }: Pick<LiveSandbox, "record" | "layer" | "unlisted">): DiskUse {
  const inherited = (record.root?.layers ?? []).reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  return { bytes: inherited + layer.bytes + unlisted.bytes, files: layer.files + unlisted.files };
}

const nothing: DiskUse = { bytes: 0, files: 0 };
export class Sandboxes {
  readonly #live = new Map<string, LiveSandbox>();
  readonly #turns = new KeyedMutex();
  readonly departures: Departures;
  readonly #store: Store;
  readonly #directory: OwnEntries<SandboxEntry>;

  constructor(store: Store, directory: OwnEntries<SandboxEntry>) {
    this.#store = store;
    this.#directory = directory;
    this.departures = new Departures(directory);
    for (const record of store.sandboxes()) this.#track(record);
  }

  all(): IterableIterator<LiveSandbox> {
    return this.#live.values();
  }

  get size(): number {
    return this.#live.size;
  }

  knows(id: string): boolean {
    return this.#live.has(id);
  }

  get(id: string): LiveSandbox | undefined {
    return this.#live.get(id);
  }

  /** How a sandbox that is known here is isolated. */
  isolationOf(id: string): Isolation {
    return isolationOf(this.#live.get(id)?.record ?? {});
  }

  /** Whether this same sandbox object is still registered. */
  has(sandbox: LiveSandbox): boolean {
    return this.#live.get(sandbox.record.id) === sandbox;
  }

  /** How many activities run now. */
  get activities(): number {
    return [...this.#live.values()].reduce((sum, sandbox) => sum + sandbox.activities.size, 0);
  }

  /** Runs changes of one sandbox one after another. */
  exclusive<T>(id: string, change: () => Promise<T>): Promise<T> {
    return this.#turns.run(id, change);
  }

  /** @throws {SandgateError} `not_found`, also for a sandbox of another account; `unavailable` while it is on its way to another worker. */
  owned(id: string, accountId: string): LiveSandbox {
    const sandbox = this.#live.get(id);
    if (!sandbox && this.departures.has(id)) throw errors.sandboxMoving();
    if (!sandbox || sandbox.record.account_id !== accountId) throw errors.notFound("sandbox", id);
    if (sandbox.record.status === "moving") throw errors.sandboxMoving();
    return sandbox;
  }

  /** @throws {SandgateError} `not_found`, `conflict`, `unavailable`. */
  running(id: string, accountId: string): RunningSandbox {
    const sandbox = this.owned(id, accountId);
    const { status } = sandbox.record;
    if (status !== "running") throw errors.sandboxNotRunning(status);
    if (!sandbox.container) throw new SandgateError("unavailable", "the sandbox is being started again; try again");
    return sandbox as RunningSandbox;
  }

  /** Records the intent to create a sandbox. Until `recorded` resolves it must not run, and when that fails it is not known any more. */
  add(record: SandboxRecord): { readonly sandbox: LiveSandbox; readonly recorded: Promise<void> } {
    const sandbox = this.#track(record);
    const recorded = this.#store.putSandbox(record).catch((error: unknown) => {
      this.#live.delete(record.id);
      throw error;
    });
    return { sandbox, recorded };
  }

  /** Adds a sandbox that is being made. It is not recorded: nothing of it is left after a restart until it is acknowledged. */
  begin(record: SandboxRecord): LiveSandbox {
    return this.#track(record);
  }

  /** Takes that back. */
  forget(sandbox: LiveSandbox): void {
    this.#live.delete(sandbox.record.id);
  }

  /** Publishes a sandbox that is still being created to the directory. */
  announce(sandbox: LiveSandbox): Promise<void> {
    return this.#publish(sandbox.record);
  }

  /** Publishes ahead that a sandbox has started, which is promised next. If that fails, it is to be removed. */
  announceStarted({ record }: LiveSandbox): Promise<void> {
    return this.#publish({ ...record, status: stateAfter(record, "started") });
  }

  /** Does ahead a part of what makes a sandbox's promise durable. */
  noteFacts(record: SandboxRecord): Promise<void> {
    return this.#store.putFacts(record);
  }

  /** Records that the caller may be told of a sandbox, which the directory lists: it is kept from then on whatever happens. */
  async acknowledge(sandbox: LiveSandbox): Promise<void> {
    sandbox.record = { ...sandbox.record, acknowledged: true };
    await this.#store.putSandbox(sandbox.record);
  }

  /**
   * Applies an event: first the state table, then the disk, then the directory.
   *
   * @throws {SandgateError} `conflict` when the state does not allow the event; `unavailable` when the directory could not be
   * updated. In that case the state on disk has changed, and is published when the bus is back.
   */
  async apply(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord> = {}): Promise<void> {
    await this.#change(sandbox, event, changes);
    await this.#publish(sandbox.record).catch(untold);
  }

  /**
   * Applies the event that acknowledges a sandbox, which is kept from then on whatever happens. The directory is updated before
   * the disk: a worker that cannot reach the directory has acknowledged nothing, and if it dies in between, it drops the sandbox.
   *
   * @param published when the directory has it, where that was begun before
   * @throws {SandgateError} `conflict`, `unavailable`; nothing was acknowledged then, and the sandbox is what it was: it can be tried again.
   */
  async promise(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord>, published?: Promise<void>): Promise<void> {
    const { record: former } = sandbox;
    this.#become(sandbox, event, changes);
    try {
      await Promise.all([published ?? this.#publish(sandbox.record), this.#store.putFacts(sandbox.record)]);
      await this.acknowledge(sandbox);
    } catch (error) {
      sandbox.record = former;
      throw error;
    }
  }

  /** Records that the copy of a sandbox is there, of which nobody is told before it is confirmed. */
  async arrive(sandbox: LiveSandbox, changes: Partial<SandboxRecord>): Promise<void> {
    await this.#change(sandbox, "arrive", changes);
  }

  /** Changes what is known of a sandbox on its way from this worker. @throws {GivenAway}, {SandgateError} `unavailable` */
  async noteMove(sandbox: LiveSandbox, changes: Partial<SandboxMove>): Promise<void> {
    const { move } = sandbox.record;
    if (!move) return;
    sandbox.record = { ...sandbox.record, move: { ...move, ...changes } };
    await this.#store.putSandbox(sandbox.record);
    await this.#publish(sandbox.record);
  }

  /**
   * The worker that a sandbox was about to leave keeps it: from now on nobody can decide otherwise.
   *
   * @throws {GivenAway} if that was decided already, {SandgateError} `unavailable`; then nothing has changed
   */
  async keep(sandbox: LiveSandbox): Promise<void> {
    const { move: _, ...kept } = { ...sandbox.record, status: "running" as const };
    await this.departures.publish(entryOf(kept));
    sandbox.record = { ...sandbox.record, move: undefined };
    await this.#change(sandbox, "stay", {});
  }

  /** Like `apply`, for a change that no caller waits for: if the bus is away, the directory is updated later. */
  async note(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord> = {}): Promise<void> {
    await this.#change(sandbox, event, changes);
    await this.#publish(sandbox.record).catch(() => {});
  }

  /** Removes the records of a sandbox whose container is gone. */
  async remove(sandbox: LiveSandbox): Promise<void> {
    await this.#store.deleteSandbox(sandbox.record.id);
    this.#live.delete(sandbox.record.id);
    if (!sandbox.record.move) return this.#directory.delete(sandbox.record.id);
    if (isLeaving(sandbox.record)) await this.departures.note(sandbox.record.id);
  }

  /** Makes the directory agree with the records while calls go on, after a start and after the bus was away. */
  async synchronise(): Promise<void> {
    await this.#directory.withdrawUnknown(
      (id) => this.#live.has(id),
      ({ moved_to }) => moved_to !== undefined,
    );
    for (const sandbox of [...this.#live.values()]) {
      // What another worker has leaves soon, and what comes after it in the list need not wait for that.
      if (this.has(sandbox) && sandbox.record.acknowledged) await this.#publish(sandbox.record).catch(unlessGivenAway);
    }
  }

  /** @throws {SandgateError} `unavailable` when the entry could not be stored. */
  async #publish(record: SandboxRecord): Promise<void> {
    if (!record.move) return this.#directory.put(record.id, entryOf(record));
    // A copy that has arrived has no entry yet, and of one that another worker has, nothing is to be said.
    if (isLeaving(record) && record.status !== "deleting") await this.departures.publish(entryOf(record));
  }

  async #change(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord>): Promise<void> {
    this.#become(sandbox, event, changes);
    await this.#store.putSandbox(sandbox.record);
  }

  #become(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord>): void {
    const status = stateAfter(sandbox.record, event);
    const { error, ...rest } = sandbox.record;
    sandbox.record = { ...rest, ...(error && status !== "running" ? { error } : {}), ...changes, status };
  }

  #track(record: SandboxRecord): LiveSandbox {
    const sandbox: LiveSandbox = { record, container: undefined, activities: new Set(), layer: nothing, unlisted: nothing, diskStale: true };
    this.#live.set(record.id, sandbox);
    this.departures.forget(record.id);
    return sandbox;
  }
}

/** @throws {SandgateError} `conflict` */
function stateAfter({ status }: SandboxRecord, event: SandboxEvent): SandboxRecord["status"] {
  const next = nextSandboxState(status, event);
  if (!next) throw new SandgateError("conflict", `the sandbox is in state "${status}", which does not allow this`);
  return next;
}

function unlessGivenAway(error: unknown): void {
  if (!(error instanceof GivenAway)) throw error;
}

/** The part of a record that is published to the directory. */
export function entryOf(record: SandboxRecord): SandboxEntry {
  const { env_vars: _env, acknowledged: _acknowledged, container_id: _container, root: _root, memory_from: _memory, move, ...entry } = record;
  return { ...entry, ...(move ? { move } : {}) };
}
