/** The resources a sandbox uses, and the log of its commands. */
import Type, { type Static } from "typebox";
import { ExecutionStatus } from "./executions.ts";
import { component, count, flag, idOf, oneOf, text, time } from "./fields.ts";

const Time = Type.String({
  description: "A time; UTC unless it names a zone.",
  pattern: "^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:?\\d{2})?)?$",
  takes: "an ISO 8601 time such as 2026-01-31T12:00:00Z",
});
/** The period that a query is about. */
export const period = { from: Type.Optional(Time), to: Type.Optional(Time) };

export const StatusQuery = Type.Object(period);
export type StatusQuery = Static<typeof StatusQuery>;

const use = {
  cpu_percent: Type.Number({ description: "CPU use in percent of the sandbox's own CPUs, 0 to 100." }),
  memory_mb: Type.Number({ description: "Memory use in MiB." }),
};
export const UsageSample = Type.Object({ timestamp: time("When the sample was taken."), ...use });
export type UsageSample = Static<typeof UsageSample>;
export const SandboxUsage = component(
  "SandboxStatus",
  {
    sandbox_name: text("The sandbox's name."),
    timestamp: time("When the current values were measured."),
    current: Type.Object({
      ...use,
      memory_percent: Type.Number({ description: "Memory use in percent of the sandbox's memory." }),
      disk_mb: Type.Number({ description: "Size of the changed files in MiB." }),
      processes: count("Number of running processes."),
    }),
    history: Type.Array(UsageSample, { description: "A sample every 10 seconds, kept for 24 hours." }),
  },
  "The current and past resource use of a sandbox.",
);
export type SandboxUsage = Static<typeof SandboxUsage>;

/** The default number of entries on a page of the log. */
export const logsDefault = 100;
export const LogsQuery = Type.Object({
  sandbox_id: Type.Optional(idOf("Only entries of this sandbox.")),
  ...period,
  limit: Type.Optional(
    Type.Integer({
      description: "Maximum number of entries. A page has fewer when it would exceed 1 MiB.",
      default: logsDefault,
      minimum: 1,
      maximum: 1_000,
      takes: "between 1 and 1000 (a whole number)",
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: "The `next_cursor` of the previous page. Continues after its last entry; `from` and `to` default to those of that page.",
      minLength: 1,
      maxLength: 256,
      takes: "the next_cursor of an earlier answer",
    }),
  ),
});
export type LogsQuery = Static<typeof LogsQuery>;

const cut = Type.Optional(flag("Whether the text was cut to the 4 KiB kept here."));
export const LogEntry = component(
  "LogEntry",
  {
    request_id: text("The id of the request that started the command."),
    execution_id: Type.Optional(text("The execution's id.")),
    sandbox_id: text("The id of the sandbox."),
    command: text("The command, cut to its beginning when longer than 4 KiB."),
    command_truncated: cut,
    command_bytes: Type.Optional(count("Length of the whole command in bytes, present when `command` is cut.")),
    working_dir: Type.Optional(text("The working directory, if the request gave one.")),
    source: oneOf(["sync", "stream", "session"], { description: "How the command was started: `execute`, `execute_async` or a live session." }),
    status: ExecutionStatus,
    exit_code: Type.Integer({ description: "The exit code, as in the execution's result." }),
    execution_time_ms: Type.Number({ description: "Run time in milliseconds." }),
    timestamp: time("When the command started."),
    stdout: Type.Optional(text("The start of standard output.")),
    stderr: Type.Optional(text("The start of standard error.")),
    stdout_truncated: cut,
    stderr_truncated: cut,
    error: Type.Optional(text("Why the service ended the command; absent when it exited by itself.")),
  },
  "A log entry for one command.",
);
export type LogEntry = Static<typeof LogEntry>;
export const Logs = component(
  "Logs",
  {
    logs: Type.Array(LogEntry, { description: "Newest first." }),
    total: count("Number of entries in the period, on all pages."),
    next_cursor: Type.Optional(text("The `cursor` of the next page; absent on the last one.")),
  },
  "A page of the command log.",
);
export type Logs = Static<typeof Logs>;
