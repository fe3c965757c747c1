/// <reference lib="esnext.disposable" preserve="true" />
/** One sandbox and one snapshot, in one file because each creates the other. */

import { pause } from "../waiting.ts";
import { type CallOptions, type MakeOptions, slowTimeoutMs, split } from "./call-options.ts";
import type { Connection, Query } from "./connection.ts";
import { type APIError, errorOfStream, NotFoundError, SandgateError } from "./errors.ts";
import { Execution, type OutputHandlers } from "./execution.ts";
import { SandboxFiles } from "./files.ts";
import { entriesOf, readLogs } from "./pages.ts";
import { type AttachOptions, attachSession, type SessionOptions, startSession } from "./session/open.ts";
import type { Session } from "./session/session.ts";
import type * as Api from "./types.ts";

export type ExecuteOptions = Omit<Api.ExecuteBody, "command"> & CallOptions;
export type ExecuteAsyncOptions = ExecuteOptions & OutputHandlers;

/** One copy of a fork: the new sandbox, or why it was not made. */
export type Forked = { sandbox: Sandbox; error?: never } | { error: APIError; sandbox?: never };

const commandTimeoutDefaultS = 30;
/** Time allowed for starting a command and returning its output, in addition to the command's own. */
const executeMarginMs = 60_000;
const deleteTimeoutMs = 90_000;
const readyPauseMs = 250;

// Missing before Node 18.18 and in some browsers, where a symbol of our own is harmless.
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** A handle for a sandbox id, as `client.sandbox(id)` returns it without a call. All methods throw the errors of `./errors.ts`. */
export class SandboxHandle extends SandboxFiles {
  /**
   * Waits until the sandbox is running.
   *
   * @param options `timeoutMs` limits the whole wait
   * @throws {SandgateError} if it can no longer start, or does not in time
   */
  async waitForReady({ timeoutMs = slowTimeoutMs, ...options }: CallOptions = {}): Promise<Api.SandboxInfo> {
    for (const deadlineMs = Date.now() + timeoutMs; ; await pause(readyPauseMs, options.signal)) {
      const info = await this.#show(options);
      if (info.status === "running") return info;
      if (info.status !== "creating" && info.status !== "moving")
        throw new SandgateError(`${this.id} is in state "${info.status}"${info.error ? `: ${info.error}` : ""}`);
      if (Date.now() > deadlineMs) throw new SandgateError(`${this.id} is not ready after ${timeoutMs} ms`);
    }
  }

  /** Fetches the sandbox with its current details. */
  async refresh(options: CallOptions = {}): Promise<Sandbox> {
    return new Sandbox(this.connection, await this.#show(options));
  }

  /**
   * Runs a command and waits for its end. A failed command is not an error: check `exit_code`. Never retried.
   *
   * @throws {APIConnectionTimeoutError} if there is no answer one minute after the command's own timeout
   */
  execute(command: string, options: ExecuteOptions = {}): Promise<Api.ExecutionResult> {
    const [rest, call] = split(options);
    const timeoutMs = (rest.timeout ?? commandTimeoutDefaultS) * 1_000 + executeMarginMs;
    return this.connection.json({ method: "POST", path: `${this.path}/execute`, json: { command, ...rest }, repeatable: false, options: call, timeoutMs });
  }

  /** Runs a command and streams its output. Never retried; `timeoutMs` applies to its start only. */
  executeAsync(command: string, options: ExecuteAsyncOptions = {}): Execution {
    const [{ onStdout, onStderr, ...rest }, call] = split(options);
    const json = { command, ...rest };
    const open = (signal: AbortSignal) =>
      this.connection.open({ method: "POST", path: `${this.path}/execute_async`, json, repeatable: false, options: { ...call, signal } });
    return new Execution(open, { onStdout, onStderr }, call.signal);
  }

  /** Starts a command, or the login shell, that accepts input and outlives its connection. */
  session(options: SessionOptions = {}): Promise<Session> {
    return startSession(this.connection, this.id, options);
  }

  /** Attaches to a running session. */
  attach(sessionId: string, options: AttachOptions = {}): Promise<Session> {
    return attachSession(this.connection, this.id, sessionId, options);
  }

  /** The sandbox's sessions, newest first. */
  async sessions(options: CallOptions = {}): Promise<Api.SessionInfo[]> {
    return (await this.connection.get<{ data: Api.SessionInfo[] }>(`${this.path}/sessions`, options)).data;
  }

  /** Creates a token with which a browser can open one WebSocket: there, `session()` of this library starts or joins a session. */
  sessionToken(options: { read_only?: boolean; session_id?: string } & CallOptions = {}): Promise<Api.SessionToken> {
    const [json, call] = split(options);
    return this.connection.json({ method: "POST", path: `${this.path}/session-token`, json, repeatable: false, options: call });
  }

  /** The sandbox's resource use. */
  status(options: Api.StatusQuery & CallOptions = {}): Promise<Api.SandboxUsage> {
    const [query, call] = split(options);
    return this.connection.get(`${this.path}/status`, call, query as Query);
  }

  /** One page of the sandbox's command log, newest first. */
  logs(options: Omit<Api.LogsQuery, "sandbox_id"> & CallOptions = {}): Promise<Api.Logs> {
    return readLogs(this.connection, { ...options, sandbox_id: this.id });
  }

  /** All entries of the sandbox's command log in a period, newest first; `limit` is the page size. */
  logEntries(options: Omit<Api.LogsQuery, "sandbox_id" | "cursor"> & CallOptions = {}): AsyncGenerator<Api.LogEntry, void, void> {
    return entriesOf((cursor) => this.logs({ ...options, ...cursor }));
  }

  /** Takes a snapshot of the sandbox. */
  async snapshot(options: Api.SnapshotBody & MakeOptions = {}): Promise<Snapshot> {
    return new Snapshot(this.connection, await this.connection.make<Api.SnapshotInfo>(`${this.path}/snapshot`, options));
  }

  /** Takes a snapshot and creates a sandbox from it. */
  async clone(options: Api.CloneBody & MakeOptions = {}): Promise<{ sandbox: Sandbox; snapshot: Snapshot }> {
    const made = await this.connection.make<{ sandbox: Api.SandboxInfo; snapshot: Api.SnapshotInfo }>(`${this.path}/clone`, options);
    return { sandbox: new Sandbox(this.connection, made.sandbox), snapshot: new Snapshot(this.connection, made.snapshot) };
  }

  /** Makes several copies of the sandbox as it is now. Each succeeds or fails on its own; the answer has them in the order of their numbers. */
  async fork(options: Api.ForkBody & MakeOptions): Promise<Forked[]> {
    const { data } = await this.connection.make<Api.Fork>(`${this.path}/fork`, options);
    return data.map((one) => ("sandbox" in one ? { sandbox: new Sandbox(this.connection, one.sandbox) } : { error: errorOfStream(one.error) }));
  }

  /** Deletes the sandbox and ends its processes. With `create_snapshot` it is not retried, as that could take two snapshots. */
  delete(options: Api.DeleteBody & CallOptions = {}): Promise<Api.DeletedSandbox> {
    const [json, call] = split(options);
    const timing = json.create_snapshot ? { repeatable: false, timeoutMs: slowTimeoutMs } : { repeatable: true, timeoutMs: deleteTimeoutMs };
    const done = (): Api.DeletedSandbox => ({ id: this.id, message: "Sandbox deleted", storage_deleted: true });
    return this.connection.delete({ method: "DELETE", path: `${this.path}/delete`, json, options: call, ...timing }, done);
  }

  /** For `await using`: deletes the sandbox at the end of the block, if it still exists. */
  async [asyncDispose](): Promise<void> {
    await this.delete().catch((error: unknown) => {
      if (!(error instanceof NotFoundError)) throw error;
    });
  }

  #show(options: CallOptions): Promise<Api.SandboxInfo> {
    return this.connection.get(this.path, options);
  }
}

/** A sandbox with its details as returned by the API. */
export class Sandbox extends SandboxHandle {
  /** The details when this object was created; `refresh` creates a new one. */
  readonly info: Api.SandboxInfo;

  constructor(connection: Connection, info: Api.SandboxInfo) {
    super(connection, info.id);
    this.info = info;
  }

  get name(): string {
    return this.info.name;
  }
}

/** A snapshot with its details as returned by the API. */
export class Snapshot {
  readonly info: Api.SnapshotInfo;
  readonly #connection: Connection;

  constructor(connection: Connection, info: Api.SnapshotInfo) {
    this.info = info;
    this.#connection = connection;
  }

  get id(): string {
    return this.info.id;
  }

  get name(): string {
    return this.info.name;
  }

  /** Creates a new sandbox from the snapshot. */
  restore(options: Api.RestoreBody & MakeOptions = {}): Promise<Sandbox> {
    return restoreSnapshot(this.#connection, this.id, options);
  }

  /** Deletes the snapshot. Sandboxes created from it are not affected. */
  delete(options: CallOptions = {}): Promise<Api.DeletedSnapshot> {
    return deleteSnapshot(this.#connection, this.id, options);
  }
}

export const snapshotPath = (id: string): string => `/v1/snapshots/${encodeURIComponent(id)}`;

/** Creates a new sandbox from a snapshot. */
export async function restoreSnapshot(connection: Connection, id: string, options: Api.RestoreBody & MakeOptions): Promise<Sandbox> {
  return new Sandbox(connection, await connection.make<Api.SandboxInfo>(`${snapshotPath(id)}/restore`, options));
}

/** Deletes a snapshot. Sandboxes created from it are not affected. */
export function deleteSnapshot(connection: Connection, id: string, options: CallOptions): Promise<Api.DeletedSnapshot> {
  const done = (): Api.DeletedSnapshot => ({ message: "Snapshot deleted", name: "", deferred: false });
  return connection.delete({ method: "DELETE", path: snapshotPath(id), repeatable: true, options, timeoutMs: slowTimeoutMs }, done);
}
