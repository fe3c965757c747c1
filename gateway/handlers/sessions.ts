/** Live sessions: the WebSocket, its tokens, and the list of sessions. */

import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { Sessions, SessionToken, SessionTokenBody } from "../../shared/schemas/sessions.ts";
import { subprotocol } from "../../shared/stream/session/protocol.ts";
import { foreignPage } from "../accounts/auth.ts";
import { type Answered, answered, type Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { SessionConnection } from "../live/connection.ts";
import { traced } from "../live/traced.ts";

/** Upgrades the request to a WebSocket. Errors before the upgrade are answered like those of any other call. */
export async function openSession(context: GatewayContext, { exchange, caller, by, id }: Call<unknown, unknown>): Promise<Answered> {
  const { protocols } = exchange;
  if (!protocols) throw new SandgateError("invalid_request", "this call must be a WebSocket upgrade");
  if (!protocols.includes(subprotocol)) throw new SandgateError("invalid_request", `the WebSocket must offer the subprotocol ${subprotocol}`);
  // Browsers send their cookie with WebSockets opened by any page, but always name the page's origin.
  if (caller.session && !exchange.header("origin")) throw foreignPage();
  if (caller.session) context.authenticator.refuseForeignPage(exchange);
  if (caller.grant && caller.grant.sandbox_id !== id) throw new SandgateError("forbidden", "this token is for another sandbox", { reason: "token_scope" });
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  if (entry.status !== "running") throw errors.sandboxNotRunning(entry.status);
  context.sockets.refuseIfFull();
  const readOnly = caller.grant?.read_only ?? false;
  const connection = new SessionConnection(context, { caller, by, sandboxId: id, worker, readOnly });
  exchange.upgrade(traced(connection, entry.id), subprotocol);
  return answered;
}

/** Creates a token for one WebSocket of a sandbox. */
export async function makeSessionToken(context: GatewayContext, call: Call<unknown, SessionTokenBody>): Promise<SessionToken> {
  const { caller, by, id, body } = call;
  await context.sandboxes.find(id, by.account_id);
  const { token, expiresAtMs } = context.tokens.issue({
    account_id: by.account_id,
    ...(caller.key ? { key_id: caller.key.id } : {}),
    ...(caller.browser === undefined ? {} : { browser: caller.browser }),
    sandbox_id: id,
    ...(body.session_id === undefined ? {} : { session_id: body.session_id }),
    read_only: body.read_only ?? false,
  });
  return { token, expires_at: new Date(expiresAtMs).toISOString() };
}

/** The sessions of a sandbox that can be attached to, newest first. */
export async function listSessions(context: GatewayContext, { by, id }: Call<unknown, unknown>): Promise<Sessions> {
  const entry = await context.sandboxes.find(id, by.account_id);
  const worker = context.workers.worker(entry.worker_id);
  const { sessions } = await context.workers.call(worker, "sessions", { ...by, sandbox_id: id });
  const data = sessions.map(({ created_at_ms, ...session }) => ({ ...session, created_at: new Date(created_at_ms).toISOString() }));
  return { data };
}
