/** Snapshots as clients see them. */
import assert from "node:assert/strict";
import { SnapshotEntry } from "../../shared/bus/entries.ts";
import { BucketWriter } from "../../shared/bus/kv.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Answer, Api } from "./api.ts";
import { connectBus } from "./bus.ts";
import { expectOk, expectSandbox, isoTime, sandboxId } from "./expect.ts";

export interface Snapshot {
  readonly id: string;
  readonly name: string;
  readonly source_sandbox_id: string;
  readonly source_sandbox_name: string;
  readonly status: string;
  readonly created_at: string;
  readonly consistency: string;
  readonly size_bytes: number;
  readonly exclusive_bytes: number | null;
  readonly shared_bytes: number | null;
  readonly memory: boolean;
  readonly memory_reason: string | null;
  readonly pause_ms: number;
}

export interface SnapshotPage {
  readonly data: Snapshot[];
  readonly pagination: Record<string, number>;
}

export interface Sandbox {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly memory_restored: boolean;
  readonly memory_reason: string | null;
}

/** An entry of the answer to a fork. */
export interface Copy {
  readonly sandbox?: Sandbox;
  readonly error?: { readonly code: string; readonly reason?: string; readonly message: string; readonly request_id: string };
}

export interface Clone {
  readonly sandbox: Sandbox;
  readonly snapshot: Snapshot;
}

export const snapshotId = /^snap_[0-9a-z]{26}$/;

/** The members that every snapshot in a response has, with their types, and no other. */
export function expectSnapshot(snapshot: Snapshot): void {
  const { id, name, source_sandbox_id, source_sandbox_name, status, created_at, consistency, memory, ...others } = snapshot;
  const { size_bytes, exclusive_bytes, shared_bytes, memory_reason, pause_ms, ...rest } = others;
  assert.match(id, snapshotId);
  assert.match(name, /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/);
  assert.match(source_sandbox_id, sandboxId);
  assert.equal(typeof source_sandbox_name, "string");
  assert.ok(["creating", "ready", "error"].includes(status));
  assert.match(created_at, isoTime);
  assert.ok(["application", "crash"].includes(consistency));
  assert.ok(Number.isInteger(size_bytes) && size_bytes >= 0, `size_bytes ${size_bytes}`);
  for (const bytes of [exclusive_bytes, shared_bytes]) assert.ok(bytes === null || (Number.isInteger(bytes) && bytes >= 0), `${bytes}`);
  assert.equal(typeof memory, "boolean");
  assert.ok(memory_reason === null || (typeof memory_reason === "string" && !memory), JSON.stringify(snapshot));
  assert.ok(Number.isFinite(pause_ms) && pause_ms >= 0, `pause_ms ${pause_ms}`);
  assert.deepEqual(rest, {});
}

/** What stays as it is while a snapshot is kept: what it shares with others is told in its own time. */
export const lasting = (snapshot: Snapshot): Snapshot => ({ ...snapshot, exclusive_bytes: null, shared_bytes: null });

type Headers = Record<string, string>;

/** The calls about snapshots, as one account makes them. */
export class SnapshotCalls {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  snapshot(sandbox: string, body: unknown = {}, headers?: Headers): Promise<Answer<Snapshot>> {
    return this.#api.call<Snapshot>("POST", `/v1/sandboxes/${sandbox}/snapshot`, body, headers);
  }

  clone(sandbox: string, body: unknown = {}, headers?: Headers): Promise<Answer<Clone>> {
    return this.#api.call<Clone>("POST", `/v1/sandboxes/${sandbox}/clone`, body, headers);
  }

  fork(sandbox: string, body: unknown, headers?: Headers): Promise<Answer<{ data: Copy[] }>> {
    return this.#api.call<{ data: Copy[] }>("POST", `/v1/sandboxes/${sandbox}/fork`, body, headers);
  }

  restore(snapshot: string, body: unknown = {}, headers?: Headers): Promise<Answer<Sandbox>> {
    return this.#api.call<Sandbox>("POST", `/v1/snapshots/${snapshot}/restore`, body, headers);
  }

  get(snapshot: string): Promise<Answer<Snapshot>> {
    return this.#api.call<Snapshot>("GET", `/v1/snapshots/${snapshot}`);
  }

  delete(snapshot: string): Promise<Answer> {
    return this.#api.call("DELETE", `/v1/snapshots/${snapshot}`);
  }

  deleteAll(): Promise<Answer> {
    return this.#api.call("DELETE", "/v1/snapshots/delete-all");
  }

  async list(query = ""): Promise<SnapshotPage> {
    return expectOk(await this.#api.call<SnapshotPage>("GET", `/v1/snapshots/list${query}`));
  }

  /** A snapshot that was taken. */
  async take(sandbox: string, body: unknown = {}): Promise<Snapshot> {
    const snapshot = expectOk(await this.snapshot(sandbox, body), 201);
    expectSnapshot(snapshot);
    return snapshot;
  }

  /** A sandbox that was restored. */
  async restored(snapshot: string, body: unknown = {}): Promise<Sandbox> {
    const sandbox = expectOk(await this.restore(snapshot, body), 201);
    expectSandbox(sandbox as never);
    return sandbox;
  }

  /** The sandboxes of a fork of which every copy was made. */
  async forked(sandbox: string, body: unknown, headers?: Headers): Promise<Sandbox[]> {
    const { data } = expectOk(await this.fork(sandbox, body, headers), 201);
    return data.map((copy) => {
      assert.deepEqual(Object.keys(copy), ["sandbox"], JSON.stringify(copy));
      expectSandbox(copy.sandbox as never);
      return copy.sandbox as Sandbox;
    });
  }

  /** What a clone made. */
  async cloned(sandbox: string, body: unknown = {}): Promise<Clone> {
    const clone = expectOk(await this.clone(sandbox, body), 201);
    assert.deepEqual(Object.keys(clone), ["sandbox", "snapshot"]);
    expectSandbox(clone.sandbox as never);
    expectSnapshot(clone.snapshot);
    return clone;
  }
}

/** Lets a test read and write entries of the directory as gateways do. */
export async function openSnapshotBucket(natsUrl: string): Promise<SnapshotBucket & AsyncDisposable> {
  const bus = await connectBus(natsUrl, "test-snapshots");
  const bucket = new SnapshotBucket(await BucketWriter.open(bus, buckets.snapshots, checker(SnapshotEntry)));
  return Object.assign(bucket, { [Symbol.asyncDispose]: () => bus.close() });
}

/** Entries by the id of their snapshot, whichever worker has it. */
export class SnapshotBucket {
  readonly #bucket: BucketWriter<SnapshotEntry>;

  constructor(bucket: BucketWriter<SnapshotEntry>) {
    this.#bucket = bucket;
  }

  async read(id: string): Promise<SnapshotEntry | undefined> {
    const key = await this.#keyOf(id);
    return key === undefined ? undefined : this.#bucket.read(key);
  }

  async change(id: string, change: (entry: SnapshotEntry) => SnapshotEntry): Promise<SnapshotEntry | undefined> {
    const key = await this.#keyOf(id);
    return key === undefined ? undefined : this.#bucket.change(key, change);
  }

  async #keyOf(id: string): Promise<string | undefined> {
    return (await this.#bucket.keys()).find((key) => key.endsWith(`.${id}`));
  }
}
