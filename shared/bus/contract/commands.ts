/** Calls to workers about commands: running one, and what is known of those that ran. */
import Type, { type Static } from "typebox";
import { errorCodes, errorReasons } from "../../errors.ts";
import { Environment } from "../../schemas/environment.ts";
import { ExecutionStatus } from "../../schemas/executions.ts";
import type { Declared } from "./declared.ts";
import { Count, caller, Empty, Id, Millis, StreamTarget } from "./fields.ts";

/** Bytes of a page of the log: what is answered at once is small beside what the bus takes, and takes no long time to be made. */
export const logsPageBytesMax = 1024 * 1024;

/** How an execution ended: the last frame of its stream. */
const ExecutionEnd = Type.Object({
  status: ExecutionStatus,
  exit_code: Type.Integer(),
  error: Type.Optional(Type.String()),
  code: Type.Optional(Type.Enum([...errorCodes])),
  reason: Type.Optional(Type.Enum([...errorReasons])),
  stdout_bytes: Count,
  stderr_bytes: Count,
  stdout_truncated: Type.Boolean(),
  stderr_truncated: Type.Boolean(),
  started_at_ms: Millis,
  ended_at_ms: Millis,
});
export type ExecutionEnd = Static<typeof ExecutionEnd>;

/** One execution as the log keeps it; every text is cut at 4 KiB. */
const LogEntry = Type.Object({
  request_id: Id,
  execution_id: Id,
  account_id: Id,
  sandbox_id: Id,
  command: Type.String(),
  /** Of the whole command, where it is cut. */
  command_bytes: Type.Optional(Count),
  working_dir: Type.Optional(Type.String()),
  source: Type.Union([Type.Literal("sync"), Type.Literal("stream"), Type.Literal("session")]),
  status: ExecutionStatus,
  exit_code: Type.Integer(),
  started_at_ms: Millis,
  execution_time_ms: Millis,
  stdout: Type.String(),
  stderr: Type.String(),
  stdout_truncated: Type.Boolean(),
  stderr_truncated: Type.Boolean(),
  error: Type.Optional(Type.String()),
});
export type LogEntry = Static<typeof LogEntry>;

const Usage = Type.Object({ cpu_percent: Type.Number(), memory_mb: Type.Number() });

export const commandCalls = {
  /** Replies when the command runs (or could not be started). */
  execute: {
    request: Type.Object({
      ...caller,
      sandbox_id: Id,
      execution_id: Id,
      source: Type.Union([Type.Literal("sync"), Type.Literal("stream")]),
      command: Type.String(),
      working_dir: Type.Optional(Type.String()),
      env: Environment,
      timeout_ms: Millis,
      /** Bytes of each stream that are sent; the rest is read and dropped. Absent: everything is sent. */
      keep_bytes: Type.Optional(Count),
      to: StreamTarget,
    }),
    reply: Empty,
    stream: { end: ExecutionEnd },
    timeoutMs: 30_000,
  },
  /** What a sandbox uses now, and its samples of the time asked for. */
  status: {
    request: Type.Object({ ...caller, sandbox_id: Id, from_ms: Millis, to_ms: Millis }),
    reply: Type.Object({
      current: Type.Object({ ...Usage.properties, memory_percent: Type.Number(), disk_mb: Type.Number(), processes: Count }),
      history: Type.Array(Type.Object({ at_ms: Millis, ...Usage.properties })),
    }),
    timeoutMs: 30_000,
  },
  logs: {
    request: Type.Object({
      ...caller,
      sandbox_id: Type.Optional(Id),
      from_ms: Millis,
      to_ms: Millis,
      /** Only what comes after this entry. */
      after: Type.Optional(Type.Object({ started_at_ms: Millis, execution_id: Id })),
      limit: Type.Integer({ minimum: 1 }),
      /** One entry comes in any case. */
      bytes_max: Type.Integer({ minimum: 0, maximum: logsPageBytesMax }),
    }),
    /** Newest first; `more`: there are entries after the last of these. */
    reply: Type.Object({ logs: Type.Array(LogEntry), total: Count, more: Type.Boolean() }),
    timeoutMs: 30_000,
  },
} satisfies Declared;
