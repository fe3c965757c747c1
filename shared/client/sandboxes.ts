/** The sandboxes of the account. */
import { type CallOptions, type MakeOptions, slowTimeoutMs } from "./call-options.ts";
import { Calls } from "./connection.ts";
import { entriesOf, type List, listOf, readLogs } from "./pages.ts";
import { Sandbox } from "./sandbox.ts";
import type { CreateBody, DeletedAll, LogEntry, Logs, LogsQuery, SandboxInfo } from "./types.ts";

/** `client.sandboxes`. */
export class Sandboxes extends Calls {
  /** @param options `image` defaults to the general-purpose image */
  async create(options: Partial<CreateBody> & MakeOptions = {}): Promise<Sandbox> {
    const wanted = { ...options, image: options.image ?? "default" };
    return new Sandbox(this.connection, await this.connection.make<SandboxInfo>("/v1/sandboxes/create", wanted));
  }

  /** Sandboxes that are running or being created, newest first. @param pageSize 1 to 100 */
  list(options: { pageSize?: number } & CallOptions = {}): List<Sandbox> {
    return listOf(this.connection, "/v1/sandboxes/list", options, (info: SandboxInfo) => new Sandbox(this.connection, info));
  }

  /** The sandboxes that a text may refer to: by id, name, or the start of their id. At most 100, newest first. */
  async find(name: string, options: CallOptions = {}): Promise<Sandbox[]> {
    const { data } = await this.connection.get<{ data: SandboxInfo[] }>("/v1/sandboxes/find", options, { name });
    return data.map((info) => new Sandbox(this.connection, info));
  }

  async get(id: string, options: CallOptions = {}): Promise<Sandbox> {
    return new Sandbox(this.connection, await this.connection.get<SandboxInfo>(`/v1/sandboxes/${encodeURIComponent(id)}`, options));
  }

  /** Deletes all sandboxes of the account. */
  deleteAll(options: CallOptions = {}): Promise<DeletedAll> {
    return this.connection.json({ method: "DELETE", path: "/v1/sandboxes/delete-all", repeatable: true, options, timeoutMs: slowTimeoutMs });
  }

  /** One page of the command log of all sandboxes, or of one with `sandbox_id`, newest first. */
  logs(options: LogsQuery & CallOptions = {}): Promise<Logs> {
    return readLogs(this.connection, options);
  }

  /** All entries of the command log in a period, newest first; `limit` is the page size. */
  logEntries(options: Omit<LogsQuery, "cursor"> & CallOptions = {}): AsyncGenerator<LogEntry, void, void> {
    return entriesOf((cursor) => this.logs({ ...options, ...cursor }));
  }
}
