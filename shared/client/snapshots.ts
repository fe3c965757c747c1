/** The snapshots of the account. */
import { type CallOptions, type MakeOptions, slowTimeoutMs } from "./call-options.ts";
import type { Connection } from "./connection.ts";
import { List } from "./pages.ts";
import { deleteSnapshot, restoreSnapshot, type Sandbox, Snapshot, snapshotPath } from "./sandbox.ts";
import type { DeletedAll, DeletedSnapshot, PageOf, RestoreBody, SnapshotInfo } from "./types.ts";

/** `client.snapshots`. */
export class Snapshots {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Snapshots that can be restored, newest first. @param pageSize 1 to 100 */
  list({ pageSize, ...options }: { pageSize?: number } & CallOptions = {}): List<Snapshot> {
    return new List(async (query) => {
      const page = await this.#connection.get<PageOf<SnapshotInfo>>("/v1/snapshots/list", options, { ...query });
      return { ...page, data: page.data.map((info) => new Snapshot(this.#connection, info)) };
    }, pageSize);
  }

  async get(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return new Snapshot(this.#connection, await this.#connection.get(snapshotPath(id), options));
  }

  /** Creates a new sandbox from a snapshot. */
  restore(id: string, options: RestoreBody & MakeOptions = {}): Promise<Sandbox> {
    return restoreSnapshot(this.#connection, id, options);
  }

  delete(id: string, options: CallOptions = {}): Promise<DeletedSnapshot> {
    return deleteSnapshot(this.#connection, id, options);
  }

  /** Deletes all snapshots of the account. */
  deleteAll(options: CallOptions = {}): Promise<DeletedAll> {
    return this.#connection.json({ method: "DELETE", path: "/v1/snapshots/delete-all", repeatable: true, options, timeoutMs: slowTimeoutMs });
  }
}
