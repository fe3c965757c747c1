/** The sandboxes of this worker in memory: records, what runs in them, and the only way to change their state. */
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { nextSandboxState, type SandboxEvent } from "../../shared/state/sandbox.ts";
import { KeyedMutex } from "../../shared/util/mutex.ts";
import type { Container } from "../runtime/container/container.ts";
import type { DiskUse } from "../runtime/filesystem/disk.ts";
import type { OwnEntries } from "../store/entries.ts";
import type { SandboxRecord } from "../store/records.ts";
import type { Store } from "../store/store.ts";

/** Something that runs in a sandbox and can be ended from outside. */
export interface Activity {
  readonly kind: "execution" | "transfer" | "session";
  /** How the names of files begin that are there only as long as this runs. */
  readonly temporaryName?: string;
  /** Ends it; the reason goes to its client. */
  abort(reason: SandgateError): void;
  /** Ends its processes as a limit would: the command is seen as killed, the reason goes with the result. */
  killFor(reason: string): void;
}

/** A sandbox with what is known of it only while it runs. */
export interface LiveSandbox {
  record: SandboxRecord;
  container: Container | undefined;
  readonly activities: Set<Activity>;
  /** The writable layer at the last measurement, and what was written through uploads since. */
  layer: DiskUse;
  /** Files beside it at the last look: without a name, or mounted. */
  unlisted: DiskUse;
  /** Whether anything ran since the layer was measured last. */
  diskStale: boolean;
}

/** What counts against the sandbox's storage: what it has written, and what was written in those that it was restored from. */
export function storedUse({ record, layer, unlisted }: Pick<LiveSandbox, "record" | "layer" | "unlisted">): DiskUse {
  const inherited = (record.root?.layers ?? []).reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  return { bytes: inherited + layer.bytes + unlisted.bytes, files: layer.files + unlisted.files };
}

const nothing: DiskUse = { bytes: 0, files: 0 };

export class Sandboxes {
  readonly #live = new Map<string, LiveSandbox>();
  readonly #turns = new KeyedMutex();
  readonly #store: Store;
  readonly #directory: OwnEntries<SandboxEntry>;

  constructor(store: Store, directory: OwnEntries<SandboxEntry>) {
    this.#store = store;
    this.#directory = directory;
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

  /** Whether this very sandbox is still there. */
  has(sandbox: LiveSandbox): boolean {
    return this.#live.get(sandbox.record.id) === sandbox;
  }

  /** How many commands and transfers run now. */
  get activities(): number {
    return [...this.#live.values()].reduce((sum, sandbox) => sum + sandbox.activities.size, 0);
  }

  /** Runs changes of one sandbox one after another. */
  exclusive<T>(id: string, change: () => Promise<T>): Promise<T> {
    return this.#turns.run(id, change);
  }

  /** @throws {SandgateError} `not_found`, also for a sandbox of another account. */
  owned(id: string, accountId: string): LiveSandbox {
    const sandbox = this.#live.get(id);
    if (!sandbox || sandbox.record.account_id !== accountId) throw new SandgateError("not_found", `Sandbox not found: ${id}`, { reason: "no_such_sandbox" });
    return sandbox;
  }

  /** A sandbox that commands can run in. @throws {SandgateError} `not_found`, `conflict`. */
  running(id: string, accountId: string): LiveSandbox & { container: Container } {
    const sandbox = this.owned(id, accountId);
    const { status } = sandbox.record;
    if (status !== "running") throw new SandgateError("conflict", `the sandbox is not running, it is in state "${status}"`);
    if (!sandbox.container) throw new SandgateError("unavailable", "the sandbox is being started again; try again");
    return sandbox as LiveSandbox & { container: Container };
  }

  /** Writes the intent to make a sandbox, or the sandbox itself where its container is there already. */
  async add(record: SandboxRecord, container?: Container): Promise<LiveSandbox> {
    const sandbox = this.#track(record);
    sandbox.container = container;
    await this.#store.putSandbox(record);
    return sandbox;
  }

  /** Tells the directory of a sandbox that is still being made. */
  announce(sandbox: LiveSandbox): Promise<void> {
    return this.#publish(sandbox.record);
  }

  /**
   * Applies an event: state table, disk, then directory.
   *
   * @throws {SandgateError} `conflict` when the state does not allow the event, `unavailable` when the directory
   * could not be told; the state on disk has changed then and is published when the bus is back.
   */
  async apply(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord> = {}): Promise<void> {
    await this.#change(sandbox, event, changes);
    await this.#publish(sandbox.record);
  }

  /**
   * Applies the event that makes a sandbox its maker's: it is kept whatever happens from now on. First the directory, then
   * the disk: a worker that cannot tell anybody has not made a promise, and one that dies in between makes it go again.
   *
   * @throws {SandgateError} `conflict`, `unavailable`; no promise was made then.
   */
  async promise(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord>): Promise<void> {
    this.#become(sandbox, event, changes);
    await this.#publish(sandbox.record);
    sandbox.record = { ...sandbox.record, acknowledged: true };
    await this.#store.putSandbox(sandbox.record);
  }

  /** Like `apply`, for a change that no caller waits for: the directory hears of it when the bus is back. */
  async note(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord> = {}): Promise<void> {
    await this.#change(sandbox, event, changes);
    await this.#publish(sandbox.record).catch(() => {});
  }

  /** Forgets a sandbox whose container is gone. */
  async remove(sandbox: LiveSandbox): Promise<void> {
    await this.#store.deleteSandbox(sandbox.record.id);
    this.#live.delete(sandbox.record.id);
    await this.#directory.delete(sandbox.record.id);
  }

  /** Makes the directory say what the records say, while calls go on: after a start and after the bus was away. */
  async synchronise(): Promise<void> {
    await this.#directory.withdrawUnknown((id) => this.#live.has(id));
    for (const sandbox of [...this.#live.values()]) {
      if (this.has(sandbox) && sandbox.record.acknowledged) await this.#publish(sandbox.record);
    }
  }

  /** @throws {SandgateError} `unavailable` when the entry could not be stored. */
  #publish(record: SandboxRecord): Promise<void> {
    return this.#directory.put(record.id, entryOf(record));
  }

  async #change(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord>): Promise<void> {
    this.#become(sandbox, event, changes);
    await this.#store.putSandbox(sandbox.record);
  }

  #become(sandbox: LiveSandbox, event: SandboxEvent, changes: Partial<SandboxRecord>): void {
    const status = nextSandboxState(sandbox.record.status, event);
    if (!status) throw new SandgateError("conflict", `the sandbox is in state "${sandbox.record.status}", which does not allow this`);
    const { error, ...rest } = sandbox.record;
    sandbox.record = { ...rest, ...(error && status !== "running" ? { error } : {}), ...changes, status };
  }

  #track(record: SandboxRecord): LiveSandbox {
    const sandbox: LiveSandbox = { record, container: undefined, activities: new Set(), layer: nothing, unlisted: nothing, diskStale: true };
    this.#live.set(record.id, sandbox);
    return sandbox;
  }
}

/** The part of a record that others may see. */
export function entryOf(record: SandboxRecord): SandboxEntry {
  const { env_vars: _env, acknowledged: _acknowledged, container_id: _container, root: _root, ...entry } = record;
  return entry;
}
