/** The snapshots of the account. */
import { type CallOptions, type MakeOptions, slowTimeoutMs } from "./call-options.ts";
import { Calls } from "./connection.ts";
import { type List, listOf } from "./pages.ts";
import { deleteSnapshot, restoreSnapshot, type Sandbox, Snapshot, snapshotPath } from "./sandbox.ts";
import type { DeletedAll, DeletedSnapshot, RestoreBody, SnapshotInfo } from "./types.ts";

/** `client.snapshots`. */
export class Snapshots extends Calls {
  /** Snapshots that can be restored, newest first. @param pageSize 1 to 100 */
  list(options: { pageSize?: number } & CallOptions = {}): List<Snapshot> {
    return listOf(this.connection, "/v1/snapshots/list", options, (info: SnapshotInfo) => new Snapshot(this.connection, info));
  }

  async get(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return new Snapshot(this.connection, await this.connection.get(snapshotPath(id), options));
  }

  /** Creates a new sandbox from a snapshot. */
  restore(id: string, options: RestoreBody & MakeOptions = {}): Promise<Sandbox> {
    return restoreSnapshot(this.connection, id, options);
  }

  delete(id: string, options: CallOptions = {}): Promise<DeletedSnapshot> {
    return deleteSnapshot(this.connection, id, options);
  }

  /** Deletes all snapshots of the account. */
  deleteAll(options: CallOptions = {}): Promise<DeletedAll> {
    return this.connection.json({ method: "DELETE", path: "/v1/snapshots/delete-all", repeatable: true, options, timeoutMs: slowTimeoutMs });
  }
}
