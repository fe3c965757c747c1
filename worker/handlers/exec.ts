/** The call `execute`: one command, its output as a stream. Both endpoints that run commands come here. */

import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import type { Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import { Stream } from "../../shared/stream/stream.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { WorkerContext } from "../context.ts";
import { Execution } from "../exec/execution.ts";
import { OutputStream } from "../exec/output.ts";
import type { RunningCommand } from "../runtime/container/command.ts";
import { ContainerNotRunning } from "../runtime/container/container.ts";
import { shellArguments } from "../runtime/container/oci.ts";
import type { Activity, LiveSandbox } from "../sandboxes/registry.ts";

/** Replies when the command runs (or could not be started); the outcome is the end of the stream. */
export async function execute(context: WorkerContext, call: Request<"execute">): Promise<object> {
  if (!context.phase.isServing) context.counters.refuse("draining");
  context.phase.refuseUnlessServing();
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  const slot = takeSlot(context, sandbox);
  const stream = Stream.answer(context.hub, call.to);
  const startedAtMs = Date.now();
  const { starts, runs } = context.counters;
  const started = starts.start();
  try {
    const command = await startCommand(context, sandbox, call);
    started();
    const ended = runs.start();
    const stdout = new OutputStream("stdout", call.keep_bytes ?? Number.POSITIVE_INFINITY);
    const stderr = new OutputStream("stderr", call.keep_bytes ?? Number.POSITIVE_INFINITY);
    const log = context.log.child({ execution: call.execution_id });
    const execution = new Execution({ command, stream, stdout, stderr, startedAtMs, log });
    slot.attach(execution);
    const logged = logExecution(context, call, { status: "running", exit_code: -1, startedAtMs, endedAtMs: startedAtMs }, stdout, stderr);
    inBackground(log, "the end of a command was not told", async () => {
      const end = await execution.finish(call.timeout_ms);
      ended();
      slot.free();
      void logExecution(context, call, { ...end, startedAtMs, endedAtMs: end.ended_at_ms }, stdout, stderr);
      stream.end(end);
    });
    // A client that has seen anything of a command finds it in the log, whatever happens to this process.
    await logged;
    return {};
  } catch (error) {
    slot.free();
    stream.close();
    if (error instanceof ContainerNotRunning) context.lifecycle.restartLost(sandbox);
    throw error;
  }
}

async function startCommand(
  context: WorkerContext,
  sandbox: ReturnType<WorkerContext["sandboxes"]["running"]>,
  call: Request<"execute">,
): Promise<RunningCommand> {
  context.counters.executions++;
  sandbox.diskStale = true;
  const command = await context.oci.exec(sandbox.container, {
    args: shellArguments(call.command),
    env: { ...sandbox.record.env_vars, ...call.env },
    workingDir: call.working_dir,
    stdin: "none",
  });
  try {
    await command.started;
    return command;
  } catch (error) {
    context.log.info(
      { event: "start_failed", err: error, cause: error instanceof Error ? error.cause : undefined, execution: call.execution_id },
      "a command could not be started",
    );
    command.exited.catch(() => {});
    command.stdout.close();
    command.stderr.close();
    throw error;
  }
}

/** Counts a command from before it starts, and lets it be ended from its first moment. */
function takeSlot({ config, counters }: WorkerContext, sandbox: LiveSandbox): Activity & { attach(execution: Execution): void; free(): void } {
  const running = [...sandbox.activities].filter(({ kind }) => kind === "execution").length;
  if (running >= config.executionsPerSandbox) {
    counters.refuse("commands");
    throw new SandgateError("rate_limited", `the sandbox already runs ${config.executionsPerSandbox} commands, which is its limit`);
  }
  let execution: Execution | undefined;
  let early: ((execution: Execution) => void) | undefined;
  const tell = (action: (execution: Execution) => void): void => {
    if (execution) action(execution);
    else early ??= action;
  };
  const slot = {
    kind: "execution" as const,
    abort: (reason: SandgateError) => tell((running) => running.abort(reason)),
    killFor: (reason: string) => tell((running) => running.killFor(reason)),
    attach: (running: Execution) => {
      execution = running;
      early?.(running);
    },
    free: () => void sandbox.activities.delete(slot),
  };
  sandbox.activities.add(slot);
  return slot;
}

type Outcome = Pick<LogEntry, "status" | "exit_code"> & { startedAtMs: number; endedAtMs: number; error?: string | undefined };

function logExecution(context: WorkerContext, call: Request<"execute">, outcome: Outcome, stdout: OutputStream, stderr: OutputStream): Promise<void> {
  const entry: LogEntry = {
    request_id: call.request_id,
    execution_id: call.execution_id,
    account_id: call.account_id,
    sandbox_id: call.sandbox_id,
    command: call.command,
    ...(call.working_dir ? { working_dir: call.working_dir } : {}),
    source: call.source,
    status: outcome.status,
    exit_code: outcome.exit_code,
    started_at_ms: outcome.startedAtMs,
    execution_time_ms: outcome.endedAtMs - outcome.startedAtMs,
    stdout: stdout.preview,
    stderr: stderr.preview,
    stdout_truncated: stdout.previewTruncated,
    stderr_truncated: stderr.previewTruncated,
    ...(outcome.error ? { error: outcome.error } : {}),
  };
  return context.store.log.put(entry).catch((err) => context.log.error({ err, execution: call.execution_id }, "an execution could not be logged"));
}
