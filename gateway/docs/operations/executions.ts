/** Calls that run commands. */
import { ExecutionResult, StreamLine } from "../../../shared/schemas/executions.ts";
import { ids, times } from "../examples.ts";
import { notRunning, workerLost } from "../failures.ts";
import { type Failures, ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Executions");

const ofCommands: Failures = {
  ...notRunning,
  ...workerLost,
  unprocessable: {
    when: "The working directory does not exist, or the image has no shell.",
    message: "working_dir does not exist or is not a directory: /missing",
    reason: "no_such_working_dir",
  },
  rate_limited: {
    when: "More requests per minute than the tier allows, or more concurrent commands than a sandbox may run (64 by default).",
    message: "the sandbox already runs 64 commands, which is its limit",
  },
};

export const execute = operation({
  name: "execute",
  summary: "Run a command and wait",
  description: `The command runs in a shell, with the sandbox's variables and then \`env\`. A command that fails is not an HTTP error: check \`exit_code\`. After \`timeout\` seconds, the command and all processes it started are killed, and the answer has the output up to then.

Each stream is kept up to 10 MiB by default; the command continues beyond that.`,
  of: "sandbox",
  body: { command: "echo $GREETING | tr a-z A-Z", timeout: 30, env: { GREETING: "hello" } },
  success: ok("The result. The status is 200 even when the command failed or timed out.", ExecutionResult, {
    id: ids.execution,
    status: "completed",
    exit_code: 0,
    stdout: "HELLO\n",
    stderr: "",
    execution_time_ms: 7,
    created_at: times.began,
    completed_at: times.began,
  }),
  failures: ofCommands,
});

export const executeAsync = operation({
  name: "executeStream",
  summary: "Run a command and stream its output",
  description: `Newline-delimited JSON: each line is an object with \`stdout\` or \`stderr\`, sent as the command writes it; characters are never split. The last line is \`{"exit_code":n}\`. If the stream fails, the last line is \`{"error":"…","code":"…"}\` instead, and there is no exit code. Ignore lines with other members.

If the client disconnects, the command is killed. If the client reads slowly, the command is slowed down; no output is lost.`,
  of: "sandbox",
  body: { command: "for i in 1 2 3; do echo $i; sleep 1; done" },
  success: {
    status: 200,
    description: "The stream, which begins when the command starts.",
    content: [{ type: "application/x-ndjson", schema: StreamLine, example: '{"stdout":"1\\n"}\n{"stdout":"2\\n"}\n{"stdout":"3\\n"}\n{"exit_code":0}\n' }],
  },
  failures: ofCommands,
});
