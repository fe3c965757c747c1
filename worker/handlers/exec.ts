/** The call `execute`: one command, its output as a stream. Both endpoints that run commands come here. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ExecutionEnd } from "../../shared/bus/contract/commands.ts";
import type { Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import { faultPoint } from "../../shared/faults.ts";
import { Stream } from "../../shared/stream/stream.ts";
import { startSpan, step } from "../../shared/tracing/spans.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { WorkerContext } from "../context.ts";
import { Execution } from "../exec/execution.ts";
import { type End, entryOf } from "../log/entry.ts";
import { refuseUnlessServing } from "../phase.ts";
import type { RunningCommand, Started } from "../runtime/container/command.ts";
import { ContainerNotRunning } from "../runtime/container/container.ts";
import { shellArguments } from "../runtime/container/oci.ts";
import type { LiveSandbox, RunningSandbox } from "../sandboxes/registry.ts";

/**
 * Replies when the command runs (or could not be started); the outcome is the end of the stream. That of a command which has ended
 * by then comes first.
 */
export async function execute(context: WorkerContext, call: Request<"execute">): Promise<object> {
  refuseUnlessServing(context);
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  refuseTooMany(context, sandbox);
  const stream = Stream.answer(context.hub, call.to);
  const log = context.log.child({ execution: call.execution_id });
  const execution = new Execution({ stream, keepBytes: call.keep_bytes, log });
  // Counts from before its command starts.
  sandbox.activities.add(execution);
  const started = context.counters.starts.start();
  try {
    const command = await step("command.start", () => startCommand(context, sandbox, call));
    started();
    faultPoint("execute.started");
    const ended = context.counters.runs.start();
    const tell = (end: ExecutionEnd): void => {
      faultPoint("execute.ended");
      ended();
      sandbox.activities.delete(execution);
      void logExecution(context, call, execution, end);
      stream.end(end);
    };
    const following = followed(execution, command, call);
    const atOnce = await Promise.race([following, nextTurn(undefined)]);
    if (atOnce) {
      tell(atOnce);
      return {};
    }
    const logged = logExecution(context, call, execution);
    inBackground(log, "the end of a command was not told", async () => tell(await following));
    // A client that has seen anything of a command finds it in the log, whatever happens to this process.
    await logged;
    return {};
  } catch (error) {
    sandbox.activities.delete(execution);
    stream.close();
    if (error instanceof ContainerNotRunning) context.lifecycle.restartLost(sandbox);
    throw error;
  }
}

/** Follows a command to its end, which is that of the stream. */
async function followed(execution: Execution, command: RunningCommand, { timeout_ms }: Request<"execute">): Promise<ExecutionEnd> {
  const span = startSpan("internal", "command.run");
  const end = await execution.follow(command, timeout_ms);
  span?.set({ "process.exit.code": end.exit_code, "sandgate.execution.status": end.status });
  span?.end(end.code && { type: end.code, isFault: end.code === "internal_error" });
  return end;
}

function refuseTooMany({ config, counters }: WorkerContext, { activities }: LiveSandbox): void {
  const running = [...activities].filter(({ kind }) => kind === "execution").length;
  if (running < config.executionsPerSandbox) return;
  counters.refuse("commands");
  throw new SandgateError("rate_limited", `the sandbox already runs ${config.executionsPerSandbox} commands, which is its limit`);
}

async function startCommand(context: WorkerContext, sandbox: RunningSandbox, call: Request<"execute">): Promise<RunningCommand> {
  context.counters.executions++;
  context.usage.noteActivity(sandbox);
  const command = await context.oci.exec(sandbox.container, {
    args: shellArguments(call.command),
    env: { ...sandbox.record.env_vars, ...call.env },
    workingDir: call.working_dir,
    stdin: "none",
  });
  return untilStarted(context, command, { execution: call.execution_id });
}

/** Resolves when a command runs, and lets go of one that could not be started. @param fields for the log */
export async function untilStarted<T extends Started>({ log }: WorkerContext, command: T, fields: object): Promise<T> {
  try {
    await command.started;
    return command;
  } catch (error) {
    log.info({ event: "start_failed", err: error, cause: error instanceof Error ? error.cause : undefined, ...fields }, "a command could not be started");
    command.exited.catch(() => {});
    command.close();
    throw error;
  }
}

function logExecution({ store, log }: WorkerContext, call: Request<"execute">, { startedAtMs, stdout, stderr }: Execution, end?: End): Promise<void> {
  const { execution_id: id, command, source } = call;
  const entry = entryOf(call, { id, command, source, startedAtMs, stdout: stdout.preview, stderr: stderr.preview }, end);
  return store.log.put(entry).catch((err) => log.error({ err, execution: id }, "an execution could not be logged"));
}
