/** What a sandbox uses, and what ran in it. */
import Type, { type Static } from "typebox";
import { ExecutionStatus } from "./executions.ts";
import { component, count, flag, idOf, oneOf, text, time } from "./fields.ts";

const Time = Type.String({
  description: "A time; UTC where it names no zone.",
  pattern: "^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:?\\d{2})?)?$",
  takes: "an ISO 8601 time such as 2026-01-31T12:00:00Z",
});
const period = { from: Type.Optional(Time), to: Type.Optional(Time) };

export const StatusQuery = Type.Object(period);
export type StatusQuery = Static<typeof StatusQuery>;

const use = {
  cpu_percent: Type.Number({ description: "Of the sandbox's own CPUs, 0 to 100." }),
  memory_mb: Type.Number({ description: "MiB." }),
};
export const UsageSample = Type.Object({ timestamp: time("When."), ...use });
export type UsageSample = Static<typeof UsageSample>;
export const SandboxUsage = component(
  "SandboxStatus",
  {
    sandbox_name: text("The sandbox's name."),
    timestamp: time("Now."),
    current: Type.Object({
      ...use,
      memory_percent: Type.Number({ description: "Of the sandbox's memory." }),
      disk_mb: Type.Number({ description: "MiB of changed files." }),
      processes: count("How many run."),
    }),
    history: Type.Array(UsageSample, { description: "A sample every 10 seconds, kept for 24 hours." }),
  },
  "What a sandbox uses now and has used.",
);
export type SandboxUsage = Static<typeof SandboxUsage>;

/** Entries on a page of the log where the caller says nothing. */
export const logsDefault = 100;
export const LogsQuery = Type.Object({
  sandbox_id: Type.Optional(idOf("Only of this sandbox.")),
  ...period,
  limit: Type.Optional(
    Type.Integer({
      description: "Entries at most; a page that would be larger than 1 MiB has fewer.",
      default: logsDefault,
      minimum: 1,
      maximum: 1_000,
      takes: "between 1 and 1000 (a whole number)",
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: "The `next_cursor` of the page before: this one goes on behind its last entry, with the same `from` and `to` where none are given.",
      minLength: 1,
      maxLength: 256,
      takes: "the next_cursor of an earlier answer",
    }),
  ),
});
export type LogsQuery = Static<typeof LogsQuery>;

const cut = Type.Optional(flag("There was more than is kept here (4 KiB)."));
export const LogEntry = component(
  "LogEntry",
  {
    request_id: text("Of the call that started it."),
    execution_id: Type.Optional(text("The execution's id.")),
    sandbox_id: text("Where it ran."),
    command: text("What ran; its beginning, where it is longer than 4 KiB."),
    command_truncated: cut,
    command_bytes: Type.Optional(count("Bytes of the whole command, where it is cut.")),
    working_dir: Type.Optional(text("Where it ran, if the call said so.")),
    source: oneOf(["sync", "stream", "session"], { description: "`execute`, `execute_async` or a live session." }),
    status: ExecutionStatus,
    exit_code: Type.Integer({ description: "As in the result." }),
    execution_time_ms: Type.Number({ description: "Milliseconds." }),
    timestamp: time("When it began."),
    stdout: Type.Optional(text("The beginning of standard output.")),
    stderr: Type.Optional(text("The beginning of standard error.")),
    stdout_truncated: cut,
    stderr_truncated: cut,
    error: Type.Optional(text("What ended it, where that was not the command itself.")),
  },
  "One command in the log.",
);
export type LogEntry = Static<typeof LogEntry>;
export const Logs = component(
  "Logs",
  {
    logs: Type.Array(LogEntry, { description: "Newest first." }),
    total: count("How many there are in that time, on all pages."),
    next_cursor: Type.Optional(text("Where there are more: the `cursor` of the next page.")),
  },
  "A page of the log of what ran.",
);
export type Logs = Static<typeof Logs>;
