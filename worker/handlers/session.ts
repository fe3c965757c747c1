/** The calls `sessionStart`, `sessionAttach` and `sessions`. */

import type { Request } from "../../shared/bus/contract/contract.ts";
import type { SessionSummary } from "../../shared/bus/contract/sessions.ts";
import { SandgateError } from "../../shared/errors.ts";
import { startSpan, step } from "../../shared/tracing/spans.ts";
import type { WorkerContext } from "../context.ts";
import { refuseUnlessServing } from "../phase.ts";
import type { Interactive } from "../runtime/container/command.ts";
import { ContainerNotRunning } from "../runtime/container/container.ts";
import { shellArguments } from "../runtime/container/oci.ts";
import type { RunningSandbox } from "../sandboxes/registry.ts";
import type { Session } from "../sessions/session.ts";
import { inSlot } from "../slots.ts";
import { untilStarted } from "./exec.ts";

/** What there is without a command: bash where the image has it. */
const loginShell = "command -v bash > /dev/null && exec bash -l; exec sh -l";
const terminalName = "xterm-256color";

/** Replies when the command runs (or could not be started). */
export async function sessionStart(context: WorkerContext, call: Request<"sessionStart">): Promise<object> {
  refuseUnlessServing(context);
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  const session = context.sessions.open(sandbox, call);
  // From now on, so that a client that goes away meanwhile is noticed.
  const first = session.attachFirst(call.to);
  try {
    // A client that has seen anything of a session finds it in the log, whatever happens to this process.
    const noted = context.sessions.note(session);
    const command = await inSlot(context.sessions.starts, () => step("command.start", () => startCommand(context, sandbox, session, call.env)));
    recordRun(command);
    await noted;
    session.run(command, first);
    return {};
  } catch (error) {
    await context.sessions.discard(session, sandbox, SandgateError.from(error));
    first.leave();
    if (error instanceof ContainerNotRunning) context.lifecycle.restartLost(sandbox);
    throw error;
  }
}

/** Replies at once; what the client gets comes on its stream. */
export async function sessionAttach(context: WorkerContext, call: Request<"sessionAttach">): Promise<object> {
  context.sandboxes.owned(call.sandbox_id, call.account_id);
  const { takeover, read_only, since } = call;
  context.sessions.find(call.session_id, call.sandbox_id).attach(call.to, { takeover, read_only, ...(since === undefined ? {} : { since }) });
  return {};
}

/** @throws {SandgateError} also `unavailable` for a sandbox of which nobody was told that it is there */
export async function sessions(context: WorkerContext, call: Request<"sessions">): Promise<{ sessions: SessionSummary[] }> {
  const { record } = context.sandboxes.owned(call.sandbox_id, call.account_id);
  if (!record.acknowledged) throw new SandgateError("unavailable", "the sandbox is still being created");
  return { sessions: context.sessions.ofSandbox(call.sandbox_id) };
}

async function startCommand(context: WorkerContext, sandbox: RunningSandbox, session: Session, env: Request<"sessionStart">["env"]): Promise<Interactive> {
  const { command, terminal, working_dir } = session.call;
  context.counters.sessions++;
  context.usage.noteActivity(sandbox);
  const spec = {
    args: shellArguments(command ?? loginShell),
    env: { ...(terminal ? { TERM: terminalName } : {}), ...sandbox.record.env_vars, ...env },
    workingDir: working_dir,
    terminal,
  };
  return untilStarted(context, await context.oci.interact(sandbox.container, spec, (bytes) => session.taken(bytes)), { session: session.call.session_id });
}

/** Records the time from the start of a session's command to its end. */
function recordRun({ exited }: Interactive): void {
  const span = startSpan("internal", "command.run");
  exited
    .then((code) => span?.set({ "process.exit.code": code }))
    .catch(() => {})
    .finally(() => span?.end());
}
