/** keys, set-key, revoke. */
import type { Command, Session } from "../command.ts";
import { UsageError } from "../failures.ts";
import { type LimitsView, limitChange, limitOptions, limitsText } from "../limits.ts";
import { ago, type Output } from "../output.ts";
import { accountId } from "./accounts.ts";
import { forEach } from "./for-each.ts";

export interface KeyView {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  readonly tier: string;
  readonly limits: LimitsView;
  readonly custom_limits: object | null;
  readonly sandboxes: number;
}

/** Keys as a table. */
export function keyTable(out: Output, keys: readonly KeyView[]): void {
  const titles = ["ID", "KEY", "NAME", "ACCOUNT", "TIER", "REQUESTS", "SANDBOXES", "LAST USED", "CREATED", "STATUS"];
  const rows = keys.map(({ id, prefix, name, account_id, tier, limits, sandboxes, last_used_at, created_at, revoked_at }) => {
    const numbers = [`${limits.requests_per_minute}/min`, `${sandboxes} of ${limits.sandboxes}`];
    const status = revoked_at ? `revoked ${ago(revoked_at)}` : "active";
    const cells = [id, `${prefix}…`, name, account_id, tier, ...numbers, ago(last_used_at), ago(created_at), status];
    return { cells, style: revoked_at ? ("dim" as const) : undefined };
  });
  out.table(titles, rows, "No keys.");
}

const pathOf = (id: string): string => `/v1/admin/keys/${encodeURIComponent(id)}`;

async function list({ client, out, values }: Session): Promise<void> {
  const account_id = values.account === undefined ? undefined : await accountId(client, values.account);
  const answer = await client.all<KeyView>("/v1/admin/keys", { account_id });
  out.show(answer, () => keyTable(out, answer.data));
}

async function set({ client, out, values, operands: [id = ""] }: Session): Promise<void> {
  if (values.tier !== undefined && values["default-tier"])
    throw new UsageError("--default-tier takes the key's own tier away: give it, or --tier, but not both");
  const body = { ...limitChange(values), ...(values["default-tier"] ? { tier: null } : {}) };
  if (Object.keys(body).length === 0) throw new UsageError("set-key needs at least one option, such as --tier pro");
  const key = await client.call<KeyView>("POST", pathOf(id), body);
  out.show(key, () => out.say(`${key.id} (${key.name}): ${key.tier}, ${limitsText(key.limits, key.custom_limits)}`));
}

async function revoke(session: Session): Promise<void> {
  const { operands, client } = session;
  await session.confirm(`Revoke ${operands.length === 1 ? operands[0] : `${operands.length} keys`}? That cannot be taken back.`);
  await forEach(session, (id) => client.call("DELETE", pathOf(id)), "revoked");
}

export const keyCommands: readonly Command[] = [
  { name: "keys", takes: "", about: "list all API keys, or those of one --account", options: ["account"], min: 0, max: 0, run: list },
  {
    name: "set-key",
    takes: "KEY_ID",
    about: "give a key a tier or limits of its own",
    options: [...limitOptions, "default-tier"],
    min: 1,
    max: 1,
    run: set,
  },
  { name: "revoke", takes: "KEY_ID…", about: "end keys for good", options: [], min: 1, max: Number.POSITIVE_INFINITY, run: revoke },
];
