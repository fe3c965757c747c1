/** The operator's call that moves a sandbox to another worker. */
import type { MoveBody, MovedSandbox } from "../../../shared/schemas/admin/fleet.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";

/** @throws {SandgateError} `not_found`, `conflict` if it does not run, `unavailable` when no other worker can take it; it goes on where it was */
export async function moveSandbox(context: GatewayContext, { exchange, by, id, body }: Call<unknown, MoveBody>): Promise<MovedSandbox> {
  const entry = await context.sandboxes.findOfAny(id);
  const { account_id } = entry;
  exchange.audited = { owner: account_id };
  const {
    from,
    to,
    commands,
    sessions,
    memory_restored = false,
    memory_reason = null,
  } = await context.moves.move({ ...by, account_id }, entry, body.worker_id);
  return { id, account_id, from, to, ended_commands: commands, ended_sessions: sessions, memory_restored, memory_reason, message: "Sandbox moved" };
}
