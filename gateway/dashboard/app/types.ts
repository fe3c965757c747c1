/** What the server sends, as far as the pages read it. */

export interface Limits {
  readonly requests_per_minute: number;
  readonly burst: number;
  readonly sandboxes: number;
}

export interface Account {
  readonly id: string;
  readonly email: string | null;
  readonly name: string;
  readonly tier: string;
  readonly operator: boolean;
  readonly created_at: string;
  readonly limits: Limits;
}

/** The answer to logging in, signing up and asking who one is. */
export interface Session {
  readonly account: Account;
  readonly csrf_token: string;
  readonly features: readonly string[];
  readonly keys_max: number;
}

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

/** One page of the account's keys. */
export interface KeysPage extends PageOf<ApiKey> {
  /** On whatever page. */
  readonly active: number;
}

export interface CreatedKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly key: string;
}

export interface KeyUsage {
  readonly id: string;
  readonly name: string;
  readonly prefix: string | null;
  /** The allowance of these pages themselves. */
  readonly dashboard: boolean;
  readonly requests: { readonly limit: number; readonly remaining: number };
  readonly sandboxes: { readonly used: number; readonly limit: number };
}

export interface UsageMinute {
  readonly timestamp: string;
  readonly requests: number;
  readonly refused: number;
  readonly sandboxes: number;
}

export interface Usage {
  readonly timestamp: string;
  readonly sandboxes: { readonly running: number; readonly creating: number; readonly error: number; readonly total: number };
  readonly keys: readonly KeyUsage[];
  readonly history: readonly UsageMinute[];
}

export interface Sandbox {
  readonly id: string;
  readonly name: string;
  readonly status: "creating" | "running" | "error" | "deleting";
  readonly image: string;
  readonly created_at: string;
  readonly cpu: number;
  readonly memory: number;
  readonly storage: number;
  readonly network: { readonly access: "none" | "outbound" };
  readonly error?: string;
}

export interface Pagination {
  readonly page: number;
  readonly page_size: number;
  readonly total_items: number;
  readonly total_pages: number;
}

export interface PageOf<T> {
  readonly data: readonly T[];
  readonly pagination: Pagination;
}

export interface Sample {
  readonly timestamp: string;
  readonly cpu_percent: number;
  readonly memory_mb: number;
}

export interface SandboxStatus {
  readonly current: {
    readonly cpu_percent: number;
    readonly memory_mb: number;
    readonly memory_percent: number;
    readonly disk_mb: number;
    readonly processes: number;
  };
  readonly history: readonly Sample[];
}

export interface LogEntry {
  readonly request_id: string;
  readonly execution_id?: string;
  readonly command: string;
  /** Of the whole command, where it is cut. */
  readonly command_bytes?: number;
  readonly working_dir?: string;
  readonly source: string;
  readonly status: string;
  readonly exit_code: number | null;
  readonly execution_time_ms: number | null;
  readonly timestamp: string;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly stdout_truncated?: boolean;
  readonly stderr_truncated?: boolean;
  readonly error?: string;
}

/** One page of the log of what ran, newest first. */
export interface Logs {
  readonly logs: readonly LogEntry[];
  readonly total: number;
  readonly next_cursor?: string;
}

/** A live session, as the list of a sandbox's has it. */
export interface LiveSession {
  readonly session_id: string;
  readonly tty: boolean;
  readonly status: "running" | "ended";
  readonly created_at: string;
}

export interface Snapshot {
  readonly id: string;
  readonly name: string;
  readonly source_sandbox_id: string;
  readonly source_sandbox_name: string;
  readonly created_at: string;
  readonly consistency: "application" | "crash";
  readonly size_bytes: number;
}
