/** The operator's calls about the sandboxes of all accounts. */

import type { SandboxEntry } from "../../../shared/bus/entries.ts";
import type { AdminDeletedSandbox, AdminSandbox, AdminSandboxPage, SandboxesQuery } from "../../../shared/schemas/admin/fleet.ts";
import { newestFirst } from "../../../shared/util/newest-first.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";
import { deleteOne, present } from "../sandboxes.ts";
import { paginate } from "../views.ts";

/** In every state, newest first; of one account or worker where the query names it. */
export function listAllSandboxes(context: GatewayContext, { query }: Call<SandboxesQuery, unknown>): AdminSandboxPage {
  const { account_id, worker_id } = query;
  const meant = [...context.sandboxes.all()].filter(
    (entry) => (account_id === undefined || entry.account_id === account_id) && (worker_id === undefined || entry.worker_id === worker_id),
  );
  return paginate(newestFirst(meant), query, adminSandboxView);
}

/** Ends and removes a sandbox of any account. @throws {SandgateError} `not_found`, or `unavailable` without its worker. */
export async function deleteAnySandbox(context: GatewayContext, { exchange, by, id }: Call<unknown, unknown>): Promise<AdminDeletedSandbox> {
  const entry = await context.sandboxes.findOfAny(id);
  exchange.audited = { owner: entry.account_id };
  await deleteOne(context, { ...by, account_id: entry.account_id }, entry);
  return { id, account_id: entry.account_id, message: "Sandbox deleted", storage_deleted: true };
}

function adminSandboxView(entry: SandboxEntry): AdminSandbox {
  const { account_id, key_id, worker_id, error } = entry;
  return { ...present(entry), account_id, key_id, worker_id, error: error ?? null };
}
