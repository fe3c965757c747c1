/** The calls `hold`, `release` and `takeBack` to the source of a move, `receive` and `confirm` to its target. */
import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { isolationOf } from "../../shared/schemas/sandboxes.ts";
import type { WorkerContext } from "../context.ts";
import { refuseUnlessServing } from "../phase.ts";
import { isLeaving } from "../sandboxes/departures.ts";
import * as moves from "../sandboxes/moves.ts";
import { entryOf } from "../sandboxes/registry.ts";
import { refuseWhenFull } from "./sandbox.ts";
import { rootFrom } from "./snapshot.ts";

/** Replies when the sandbox stands still and all that another worker needs is in the object store. */
export async function hold(context: WorkerContext, call: Request<"hold">): Promise<Reply<"hold">> {
  refuseUnlessServing(context);
  const { sandboxes } = context;
  sandboxes.running(call.sandbox_id, call.account_id);
  return sandboxes.exclusive(call.sandbox_id, async () => {
    const sandbox = sandboxes.running(call.sandbox_id, call.account_id);
    const snapshot = await moves.hold(context, sandbox, call);
    const kinds = [...sandbox.activities].map(({ kind }) => kind);
    const running = { commands: kinds.filter((kind) => kind === "execution").length, sessions: kinds.filter((kind) => kind === "session").length };
    return { sandbox: entryOf(sandbox.record), snapshot, env_vars: { ...sandbox.record.env_vars }, ...running };
  });
}

/** Replies when the copy is there and waits. */
export async function receive(context: WorkerContext, call: Request<"receive">): Promise<object> {
  const { sandbox, snapshot } = call;
  if (sandbox.id !== call.sandbox_id || sandbox.account_id !== call.account_id || snapshot.worker_id !== sandbox.worker_id)
    throw new SandgateError("invalid_request", "the sandbox is not the one that is moved");
  if (isolationOf(sandbox) === "strong" && !context.host.hasStrong) throw errors.noStrongWorker();
  refuseWhenFull(context);
  await context.sandboxes.exclusive(sandbox.id, () => moves.endEarlier(context, sandbox.id));
  await moves.receive(context, call, rootFrom(context, snapshot));
  return {};
}

/** Replies when the directory knows it. */
export async function confirm(context: WorkerContext, call: Request<"confirm">): Promise<SandboxEntry> {
  return context.sandboxes.exclusive(call.sandbox_id, async () => {
    const sandbox = context.sandboxes.get(call.sandbox_id);
    if (sandbox?.record.account_id !== call.account_id) throw errors.notFound("sandbox", call.sandbox_id);
    await moves.confirm(context, sandbox, call.move_id);
    return entryOf(sandbox.record);
  });
}

/** Replies when the copy is gone. @throws {SandgateError} `conflict` while no other worker has the sandbox */
export async function release(context: WorkerContext, { sandbox_id }: Request<"release">): Promise<object> {
  const { sandboxes } = context;
  await sandboxes.exclusive(sandbox_id, async () => {
    if (!(await sandboxes.departures.isGiven(sandbox_id))) throw new SandgateError("conflict", "the sandbox is still this worker's");
    await moves.endDeparture(context, sandbox_id);
  });
  return {};
}

export async function takeBack(context: WorkerContext, { sandbox_id, move_id }: Request<"takeBack">): Promise<Reply<"takeBack">> {
  const { sandboxes } = context;
  return sandboxes.exclusive(sandbox_id, async () => {
    const sandbox = sandboxes.get(sandbox_id);
    if (!sandbox) return { kept: false };
    const isOnItsWay = isLeaving(sandbox.record) && sandbox.record.move?.id === move_id && sandbox.record.status === "moving";
    return { kept: isOnItsWay ? await moves.goOn(context, sandbox) : true };
  });
}
