/**
 * The answers of the HTTP API about sandboxes, executions, files and snapshots. `component` is our own annotation:
 * the name under which openapi.json has the schema.
 */
import Type, { type TProperties, type TSchema } from "typebox";
import { errorCodes, errorReasons } from "../errors.ts";
import { sandboxStates } from "../state/sandbox.ts";
import { snapshotStates } from "../state/snapshot.ts";
import { ExecutionStatus, fileTypes, Network } from "./api.ts";

export const text = (description: string) => Type.String({ description });
export const count = (description: string) => Type.Integer({ description, minimum: 0 });
export const flag = (description: string) => Type.Boolean({ description });
export const time = (description: string) => Type.String({ description, format: "date-time" });
/** An object that openapi.json has under a name. */
export const component = <P extends TProperties>(name: string, properties: P, description?: string) =>
  Type.Object(properties, { component: name, ...(description ? { description } : {}) });

const id = text("The sandbox's id.");
const message = text("What was done, for people.");

/** The members of a sandbox, for the answers that have more. */
export const sandboxMembers = {
  id,
  name: text("Given at creation, or made."),
  status: Type.Enum([...sandboxStates], { description: "`error` says why it cannot be used." }),
  image: text("The container image that it was made from."),
  created_at: time("When it was made."),
  cpu: count("Number of CPUs."),
  memory: count("MiB."),
  storage: count("GB."),
  disk_size: count("The same as `storage`."),
  network: Network,
};
const error = Type.Optional(text("Why the sandbox cannot be used; only with status `error`."));
export const SandboxAnswer = component("Sandbox", { ...sandboxMembers, error });

const Pagination = component("Pagination", {
  page: count("This page, from 1."),
  page_size: count("Items on a page."),
  total_items: count("Items on all pages."),
  total_pages: count("Number of pages."),
});
/** One page of a list. */
export const pageOf = (name: string, item: TSchema, more: Readonly<Record<string, TSchema>> = {}) =>
  component(name, { data: Type.Array(item), pagination: Pagination, ...more });
export const SandboxPageAnswer = pageOf("SandboxPage", SandboxAnswer);
export const FoundSandboxesAnswer = component("FoundSandboxes", { data: Type.Array(SandboxAnswer, { description: "Newest first." }) });

export const DeletedSandboxAnswer = component("DeletedSandbox", {
  id,
  message,
  snapshot_created: Type.Optional(flag("A last snapshot was taken.")),
  snapshot_name: Type.Optional(text("Its name.")),
  storage_deleted: flag("The files are gone."),
});

export const DeletedAllAnswer = component("DeletedAll", {
  deleted_count: count("How many are gone."),
  deleted_ids: Type.Array(Type.String(), { description: "Which." }),
  message,
  errors: Type.Optional(Type.Array(Type.Object({ id: Type.String(), error: Type.String() }), { description: "Those that could not be deleted." })),
});

const truncated = Type.Optional(flag("There was more than is kept (10 MiB of each stream by default)."));
export const ExecutionAnswer = component("Execution", {
  id: text("The execution's id."),
  status: ExecutionStatus,
  exit_code: Type.Integer({ description: "The command's; 128+n when signal n ended it, 124 with status `timeout`, -1 with status `error`." }),
  stdout: text("Standard output, as UTF-8."),
  stderr: text("Standard error, as UTF-8."),
  stdout_truncated: truncated,
  stderr_truncated: truncated,
  error: Type.Optional(text("What ended the command, where that was not the command itself.")),
  execution_time_ms: Type.Number({ description: "Milliseconds.", minimum: 0 }),
  created_at: time("When it began."),
  completed_at: time("When it ended."),
});

export const ErrorCodeAnswer = Type.Enum([...errorCodes], { component: "ErrorCode", description: "What is wrong, for programs: a closed set." });

export const ErrorReasonAnswer = Type.Enum([...errorReasons], {
  component: "ErrorReason",
  description: "What exactly is not there or cannot be done, for programs: a closed set. Comes with the codes `not_found` and `unprocessable`.",
});

/** One line of an execution's stream. */
export const ChunkAnswer = component(
  "StreamChunk",
  {
    stdout: Type.Optional(text("A piece of standard output.")),
    stderr: Type.Optional(text("A piece of standard error.")),
    exit_code: Type.Optional(Type.Integer({ description: "How the command ended; only in the last line." })),
    error: Type.Optional(text("Why the stream ended without an exit code; only in the last line.")),
    code: Type.Optional(ErrorCodeAnswer),
    reason: Type.Optional(ErrorReasonAnswer),
  },
  "One line of the stream. The last one has either `exit_code` or `error` and `code`.",
);

export const UploadedAnswer = component("UploadedFile", {
  message,
  path: text("Where the file is, or the folder in which an archive was unpacked."),
  size: count("Bytes."),
  files: Type.Optional(count("Files and folders of an archive.")),
});

export const FileAnswer = component("File", {
  path: text("The path that was asked for."),
  type: Type.Enum([...fileTypes], { description: "Links are followed." }),
  size: count("Bytes of a file."),
  mode: text("In octal."),
  modified_at: time("When it was last changed."),
});

const use = {
  cpu_percent: Type.Number({ description: "Of the sandbox's own CPUs, 0 to 100." }),
  memory_mb: Type.Number({ description: "MiB." }),
};
export const StatusAnswer = component("SandboxStatus", {
  sandbox_name: text("The sandbox's name."),
  timestamp: time("Now."),
  current: Type.Object({
    ...use,
    memory_percent: Type.Number({ description: "Of the sandbox's memory." }),
    disk_mb: Type.Number({ description: "MiB of changed files." }),
    processes: count("How many run."),
  }),
  history: Type.Array(Type.Object({ timestamp: time("When."), ...use }), { description: "A sample every 10 seconds, kept for 24 hours." }),
});

const cut = Type.Optional(flag("There was more than is kept here (4 KiB)."));
const LogEntryAnswer = component("LogEntry", {
  request_id: text("Of the call that started it."),
  execution_id: Type.Optional(text("The execution's id.")),
  sandbox_id: text("Where it ran."),
  command: text("What ran; its beginning, where it is longer than 4 KiB."),
  command_truncated: cut,
  command_bytes: Type.Optional(count("Bytes of the whole command, where it is cut.")),
  working_dir: Type.Optional(text("Where it ran, if the call said so.")),
  source: Type.Enum(["sync", "stream", "session"], { description: "`execute`, `execute_async` or a live session." }),
  status: ExecutionStatus,
  exit_code: Type.Integer({ description: "As in the result." }),
  execution_time_ms: Type.Number({ description: "Milliseconds." }),
  timestamp: time("When it began."),
  stdout: Type.Optional(text("The beginning of standard output.")),
  stderr: Type.Optional(text("The beginning of standard error.")),
  stdout_truncated: cut,
  stderr_truncated: cut,
  error: Type.Optional(text("What ended it, where that was not the command itself.")),
});
export const LogsAnswer = component("Logs", {
  logs: Type.Array(LogEntryAnswer, { description: "Newest first." }),
  total: count("How many there are in that time, on all pages."),
  next_cursor: Type.Optional(text("Where there are more: the `cursor` of the next page.")),
});

export const SnapshotAnswer = component("Snapshot", {
  id: text("The snapshot's id."),
  name: text("Given, or made."),
  source_sandbox_id: text("What it was taken of."),
  source_sandbox_name: text("That sandbox's name."),
  status: Type.Enum([...snapshotStates], { description: "Only a `ready` one can be restored." }),
  created_at: time("The moment that it keeps."),
  consistency: Type.Enum(["application", "crash"], { description: "`application`: the processes stood still; `crash`: they did not." }),
  size_bytes: count("Bytes of the files that the sandbox had changed."),
  memory: flag("Whether processes and their memory are in it."),
});
export const SnapshotPageAnswer = pageOf("SnapshotPage", SnapshotAnswer);
export const CloneAnswer = component("Clone", { sandbox: SandboxAnswer, snapshot: SnapshotAnswer });
export const DeletedSnapshotAnswer = component("DeletedSnapshot", {
  message,
  name: text("The snapshot's name."),
  deferred: flag("Always false: it is gone."),
});

export const ErrorAnswer = component("Error", {
  error: Type.Object({
    code: ErrorCodeAnswer,
    reason: Type.Optional(ErrorReasonAnswer),
    message: text("What is wrong, for people."),
    request_id: text("The `x-request-id` of this answer, under which the server's log has it."),
  }),
});

export const HealthAnswer = component("Health", { status: Type.Literal("ok", { description: "It answers." }) });
export const ReadinessAnswer = component("Readiness", {
  status: Type.Enum(["ready", "unavailable"], { description: "Whether calls can be carried out." }),
  nats: flag("NATS can be reached."),
  workers: Type.Array(
    Type.Object({
      id: text("The worker."),
      draining: flag("It is stopping."),
      not_enforced: Type.Array(Type.String(), { description: "Limits that its host lacks." }),
    }),
    { description: "Those that are there." },
  ),
});
