/** Commands that run in a sandbox, with the result returned at once or streamed. */
import Type, { type Static } from "typebox";
import { EnvVars } from "./environment.ts";
import { component, ErrorCode, ErrorReason, flag, oneOf, text, time } from "./fields.ts";

export const commandBytesMax = 128 * 1024;

export const Command = Type.String({
  description: "Run as `/bin/sh -c command`, so pipes, redirects and chaining work.",
  pattern: "^[^\\u0000]+$",
  takes: `a string of 1 to ${commandBytesMax} bytes without NUL`,
});
export const WorkingDir = Type.String({
  description: "The directory the command runs in; defaults to the image's working directory.",
  pattern: "^/[^\\u0000]*$",
  maxLength: 4_096,
  takes: "an absolute path of at most 4096 characters",
});

export const ExecuteBody = Type.Object({
  command: Command,
  timeout: Type.Optional(
    Type.Integer({
      description: "Seconds after which the command and every process it started are killed.",
      default: 30,
      minimum: 1,
      maximum: 300,
      takes: "between 1 and 300 (a whole number of seconds)",
    }),
  ),
  working_dir: Type.Optional(WorkingDir),
  env: Type.Optional(EnvVars),
});
export type ExecuteBody = Static<typeof ExecuteBody>;

/** The upper bound of `timeout` is a setting, so the handler checks it. */
export const ExecuteAsyncBody = Type.Object({
  ...ExecuteBody.properties,
  timeout: Type.Optional(
    Type.Integer({
      description:
        "Seconds after which the command and every process it started are killed. Defaults to the server's maximum, which is one hour unless configured.",
      minimum: 1,
      takes: "a whole number of seconds, at least 1",
    }),
  ),
});
export type ExecuteAsyncBody = Static<typeof ExecuteAsyncBody>;

/** The status of one execution, in results and logs. */
export const ExecutionStatus = oneOf(["running", "completed", "timeout", "error"], {});
export type ExecutionStatus = Static<typeof ExecutionStatus>;

const truncated = Type.Optional(flag("Whether the output was cut because it exceeded the limit (10 MiB per stream by default)."));
export const ExecutionResult = component(
  "Execution",
  {
    id: text("The execution's id."),
    status: ExecutionStatus,
    exit_code: Type.Integer({ description: "The command's exit code: 128+n when signal n ended it, 124 with status `timeout`, -1 with status `error`." }),
    stdout: text("Standard output as UTF-8."),
    stderr: text("Standard error as UTF-8."),
    stdout_truncated: truncated,
    stderr_truncated: truncated,
    error: Type.Optional(text("Why the service ended the command; absent when it exited by itself.")),
    execution_time_ms: Type.Number({ description: "Run time in milliseconds.", minimum: 0 }),
    created_at: time("When the execution started."),
    completed_at: time("When the execution ended."),
  },
  "The result of a command. A failed command is not an API error: check `exit_code`.",
);
export type ExecutionResult = Static<typeof ExecutionResult>;

/** One line of an `execute_async` stream. */
export const StreamLine = component(
  "StreamChunk",
  {
    stdout: Type.Optional(text("A piece of standard output.")),
    stderr: Type.Optional(text("A piece of standard error.")),
    exit_code: Type.Optional(Type.Integer({ description: "The command's exit code; only in the last line." })),
    error: Type.Optional(text("Why the stream ended without an exit code; only in the last line.")),
    code: Type.Optional(ErrorCode),
    reason: Type.Optional(ErrorReason),
  },
  "One line of the stream. The last line has either `exit_code` or `error` and `code`.",
);
export type StreamLine = Static<typeof StreamLine>;
