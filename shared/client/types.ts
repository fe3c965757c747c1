/**
 * What calls take and answer, by the field names of the HTTP API. Plain types, so that programs which use the client
 * need nothing else to be checked; a test compares them with the schemas that the gateway checks by.
 */

/** What a sandbox may use. */
export interface Resources {
  /** Whole CPUs, 1 to 32. */
  cpus?: number;
  /** MiB, 128 to 32768. */
  memory?: number;
  /** GB, 1 to 1000. */
  storage?: number;
}

export interface CreateBody {
  /** A container image, or `"default"` for the general-purpose one. */
  image: string;
  /** 1 to 63 letters, digits, `_`, `.`, `-`. Made up when absent; need not be unique. */
  name?: string;
  resources?: Resources;
  /** Environment variables of every command in the sandbox. */
  env_vars?: Record<string, string>;
  network?: { access: "none" | "outbound" };
  /** `true` (the default) answers when the sandbox runs, `false` at once; see `waitForReady`. */
  wait_for_ready?: boolean;
}

export interface DeleteBody {
  /** Take a last snapshot first. */
  create_snapshot?: boolean;
  snapshot_name?: string;
}

export interface SnapshotBody {
  name?: string;
  /** Do not make the sandbox stand still: quicker, but only crash-consistent. */
  quick?: boolean;
}

export interface CloneBody {
  name?: string;
  snapshot_name?: string;
  /** Storage is that of the source. */
  resources?: { cpus?: number; memory?: number };
  image?: string;
  wait_for_ready?: boolean;
}

export interface RestoreBody {
  name?: string;
  resources?: Resources;
  image?: string;
  /** Over those of the snapshot. */
  env_vars?: Record<string, string>;
  wait_for_ready?: boolean;
}

export interface ExecuteBody {
  /** Run by `/bin/sh -c`; at most 128 KiB. */
  command: string;
  /** Whole seconds: 1 to 300, 30 when absent, for `execute`; by default up to an hour for `executeAsync`. */
  timeout?: number;
  /** An absolute path. */
  working_dir?: string;
  /** Over the sandbox's own variables. */
  env?: Record<string, string>;
}

export interface PageQuery {
  /** From 1. */
  page?: number;
  /** 1 to 100, 20 when absent. */
  page_size?: number;
}

export interface StatusQuery {
  /** ISO 8601; a day before `to` when absent. */
  from?: string;
  /** ISO 8601; now when absent. */
  to?: string;
}

export interface LogsQuery {
  sandbox_id?: string;
  /** ISO 8601; an hour before `to` when absent. */
  from?: string;
  /** ISO 8601; now when absent. */
  to?: string;
  /** 1 to 1000, 100 when absent. */
  limit?: number;
  /** The `next_cursor` of the page before. */
  cursor?: string;
}

/** A sandbox as the API shows it. */
export interface SandboxInfo {
  id: string;
  name: string;
  status: "creating" | "running" | "error" | "deleting";
  image: string;
  /** ISO 8601 UTC. */
  created_at: string;
  cpu: number;
  /** MiB. */
  memory: number;
  /** GB. */
  storage: number;
  /** GB; the same as `storage`. */
  disk_size: number;
  network: { access: "none" | "outbound" };
  /** Why its status is `error`. */
  error?: string;
}

/** A snapshot as the API shows it. */
export interface SnapshotInfo {
  id: string;
  name: string;
  source_sandbox_id: string;
  source_sandbox_name: string;
  status: "creating" | "ready" | "error" | "deleting";
  /** ISO 8601 UTC. */
  created_at: string;
  consistency: "application" | "crash";
  size_bytes: number;
  /** Whether the memory of its processes was captured as well. */
  memory: boolean;
}

export type ExecutionStatus = "running" | "completed" | "timeout" | "error";

/** How a command went. One that failed is no error: look at `exit_code`. */
export interface ExecutionResult {
  id: string;
  status: ExecutionStatus;
  /** The command's; `128+n` when signal n ended it, 124 with status `timeout`, -1 with status `error`. */
  exit_code: number;
  stdout: string;
  stderr: string;
  stdout_truncated?: boolean;
  stderr_truncated?: boolean;
  /** Which limit ended the command, or why it could not be run to its end. */
  error?: string;
  execution_time_ms: number;
  created_at: string;
  completed_at: string;
}

/** A piece of the output of a running command. */
export type OutputChunk = { stdout: string; stderr?: never } | { stderr: string; stdout?: never };

export interface UploadResult {
  message: string;
  path: string;
  /** Bytes. */
  size: number;
  /** Files and folders of an archive. */
  files?: number;
}

/** What was unpacked. */
export interface ArchiveResult extends UploadResult {
  files: number;
}

/** What stands at a path in a sandbox. */
export interface FileInfo {
  path: string;
  type: "file" | "directory" | "other";
  /** Bytes of a file. */
  size: number;
  /** Octal, such as `"644"`. */
  mode: string;
  /** ISO 8601 UTC. */
  modified_at: string;
}

interface UsageNow {
  /** 0 to 100, of the sandbox's own CPUs. */
  cpu_percent: number;
  memory_mb: number;
}

/** What a sandbox uses now and has used. */
export interface SandboxUsage {
  sandbox_name: string;
  timestamp: string;
  current: UsageNow & { memory_percent: number; disk_mb: number; processes: number };
  /** A sample every ten seconds, for a day. */
  history: (UsageNow & { timestamp: string })[];
}

/** One command in the log; command and outputs are cut at 4 KiB. */
export interface LogEntry {
  request_id: string;
  execution_id?: string;
  sandbox_id: string;
  command: string;
  command_truncated?: boolean;
  /** Of the whole command, where it is cut. */
  command_bytes?: number;
  working_dir?: string;
  source: "sync" | "stream" | "session";
  status: ExecutionStatus;
  exit_code: number;
  execution_time_ms: number;
  timestamp: string;
  stdout?: string;
  stderr?: string;
  stdout_truncated?: boolean;
  stderr_truncated?: boolean;
  error?: string;
}

export interface Logs {
  /** Newest first. */
  logs: LogEntry[];
  /** On all pages. */
  total: number;
  /** Where there are more. */
  next_cursor?: string;
}

export interface DeletedSandbox {
  id: string;
  message: string;
  snapshot_created?: boolean;
  snapshot_name?: string;
  storage_deleted: boolean;
}

export interface DeletedSnapshot {
  message: string;
  name: string;
  deferred: boolean;
}

export interface DeletedAll {
  deleted_count: number;
  deleted_ids: string[];
  message: string;
  /** Those that could not be deleted. */
  errors?: { id: string; error: string }[];
}

export interface PageOf<T> {
  data: T[];
  pagination: { page: number; page_size: number; total_items: number; total_pages: number };
}

export interface Limits {
  requests_per_minute: number;
  /** Requests at once. */
  burst: number;
  sandboxes: number;
}

/** A live session of a sandbox. */
export interface SessionInfo {
  session_id: string;
  /** Null for the login shell; the beginning of one that is longer than 4 KiB. */
  command: string | null;
  /** The length of the command where `command` is only its beginning. */
  command_bytes?: number;
  tty: boolean;
  created_at: string;
  /** Clients now. */
  attached: number;
  /** `ended`: its last output and its exit code can still be had. */
  status: "running" | "ended";
}

/** For one WebSocket, such as that of a browser, which must not have the key. */
export interface SessionToken {
  token: string;
  expires_at: string;
}

/** Whose key it is. */
export interface Account {
  account: { id: string; email: string | null; name: string; tier: "beta" | "pro" | "enterprise"; operator: boolean; created_at: string; limits: Limits };
  /** The optional parts that this server has. */
  features: string[];
  /** Active keys that the account may have. */
  keys_max: number;
}

/** An API key without its secret. */
export interface ApiKey {
  id: string;
  name: string;
  /** The first characters of the key. */
  prefix: string;
  created_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  tier: "beta" | "pro" | "enterprise";
  limits: Limits;
}

/** What the account uses of its limits. */
export interface AccountUsage {
  timestamp: string;
  sandboxes: { running: number; creating: number; error: number; total: number };
  keys: {
    id: string;
    name: string;
    prefix: string | null;
    dashboard: boolean;
    requests: { limit: number; remaining: number };
    sandboxes: { used: number; limit: number };
  }[];
  /** The last hour, minute by minute; `sandboxes` is the most at the same time. */
  history: { timestamp: string; requests: number; refused: number; sandboxes: number }[];
}
