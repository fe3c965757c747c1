/** Snapshots: one, and those of the account. */
import { slowTimeoutMs } from "./call-options.ts";
import type { CallOptions, Connection, MakeOptions } from "./connection.ts";
import { List } from "./pages.ts";
import { Sandbox } from "./sandbox.ts";
import type { DeletedAll, DeletedSnapshot, PageOf, RestoreBody, SandboxInfo, SnapshotInfo } from "./types.ts";

const pathOf = (id: string): string => `/v1/snapshots/${encodeURIComponent(id)}`;

/** A snapshot and what the API has shown of it. */
export class Snapshot {
  readonly info: SnapshotInfo;
  readonly #all: Snapshots;

  constructor(connection: Connection, info: SnapshotInfo) {
    this.info = info;
    this.#all = new Snapshots(connection);
  }

  get id(): string {
    return this.info.id;
  }

  get name(): string {
    return this.info.name;
  }

  /** A new sandbox from it. */
  restore(options: RestoreBody & MakeOptions = {}): Promise<Sandbox> {
    return this.#all.restore(this.id, options);
  }

  /** Sandboxes made from it live on. */
  delete(options: CallOptions = {}): Promise<DeletedSnapshot> {
    return this.#all.delete(this.id, options);
  }
}

/** `client.snapshots`. */
export class Snapshots {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Those that can be restored, newest first. @param pageSize 1 to 100 */
  list({ pageSize, ...options }: { pageSize?: number } & CallOptions = {}): List<Snapshot> {
    return new List(async (query) => {
      const page = await this.#connection.json<PageOf<SnapshotInfo>>({
        method: "GET",
        path: "/v1/snapshots/list",
        query: { ...query },
        repeatable: true,
        options,
      });
      return { ...page, data: page.data.map((info) => new Snapshot(this.#connection, info)) };
    }, pageSize);
  }

  async get(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return new Snapshot(this.#connection, await this.#connection.json({ method: "GET", path: pathOf(id), repeatable: true, options }));
  }

  /** A new sandbox from a snapshot. */
  async restore(id: string, options: RestoreBody & MakeOptions = {}): Promise<Sandbox> {
    return new Sandbox(this.#connection, await this.#connection.make<SandboxInfo>(`${pathOf(id)}/restore`, options));
  }

  delete(id: string, options: CallOptions = {}): Promise<DeletedSnapshot> {
    const done = (): DeletedSnapshot => ({ message: "Snapshot deleted", name: "", deferred: false });
    return this.#connection.delete({ method: "DELETE", path: pathOf(id), repeatable: true, options, timeoutMs: slowTimeoutMs }, done);
  }

  /** All of the account. */
  deleteAll(options: CallOptions = {}): Promise<DeletedAll> {
    return this.#connection.json({ method: "DELETE", path: "/v1/snapshots/delete-all", repeatable: true, options, timeoutMs: slowTimeoutMs });
  }
}
