/** Drains a worker: no new calls, time for running commands, then an explicit end. It does not wait for sessions: a shell has no end. */

import { errors } from "../shared/known-errors.ts";
import { until } from "../shared/waiting.ts";
import type { WorkerContext } from "./context.ts";

const pollMs = 50;
const endMs = 2_000;

/** Resolves when nothing runs any more and, if configured, the sandboxes are stopped. */
export async function drain(context: WorkerContext): Promise<void> {
  context.phase.drain();
  context.peers.beat();
  await idle(context, context.config.drainMs);
  const reason = errors.stopping("worker");
  for (const sandbox of context.sandboxes.all()) context.lifecycle.endActivities(sandbox, reason);
  await idle(context, endMs);
  // A snapshot still in progress fails; its sandbox must not stay frozen while this worker is away.
  context.oci.standstills.thawAll();
  context.hub.abortAll(reason);
  await context.pool.stop();
  if (!context.config.stopSandboxes) return;
  await Promise.all(
    [...context.sandboxes.all()].map((sandbox) =>
      context.lifecycle.stop(sandbox).catch((err) => context.log.error({ err, sandbox: sandbox.record.id }, "a sandbox could not be stopped")),
    ),
  );
}

function idle({ sandboxes, sessions, counters }: WorkerContext, timeoutMs: number): Promise<boolean> {
  return until(() => sandboxes.activities - sessions.running + counters.calls === 0, { timeoutMs, pollMs });
}
