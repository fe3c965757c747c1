/** accounts, account, set, suspend, resume. */
import type { AdminClient } from "../client.ts";
import type { Command, Session } from "../command.ts";
import { AdminError, UsageError } from "../failures.ts";
import { type LimitsView, limitChange, limitOptions, limitsText } from "../limits.ts";
import { ago, type Output } from "../output.ts";
import { type KeyView, keyTable } from "./keys.ts";

interface AccountView {
  readonly id: string;
  readonly email: string | null;
  readonly name: string;
  readonly tier: string;
  readonly limits: LimitsView;
  readonly custom_limits: object | null;
  readonly suspended: boolean;
  readonly operator: boolean;
  readonly created_at: string;
  readonly keys: number;
  readonly sandboxes: number;
}

interface AccountWithKeys extends AccountView {
  readonly api_keys: readonly KeyView[];
}

/** The id of an account that was named by its id or its e-mail address. @throws {AdminError} when there is none. */
export async function accountId(client: AdminClient, name: string): Promise<string> {
  if (name.startsWith("acct_")) return name;
  const { data } = await client.all<AccountView>("/v1/admin/accounts", { email: name });
  const found = data.find(({ email }) => email?.toLowerCase() === name.toLowerCase());
  if (!found) throw new AdminError(`no account has the e-mail address ${name}`);
  return found.id;
}

const pathOf = (id: string): string => `/v1/admin/accounts/${encodeURIComponent(id)}`;
const nameOf = ({ email, name, id }: AccountView): string => `${email ?? name} (${id})`;
const statusOf = ({ suspended, operator }: AccountView): string => [suspended && "suspended", operator && "operator"].filter(Boolean).join(", ");

async function list({ client, out, values }: Session): Promise<void> {
  const answer = await client.all<AccountView>("/v1/admin/accounts", { email: values.email });
  const rows = answer.data.map((account) => {
    const { id, email, name, tier, limits, custom_limits, keys, sandboxes, created_at, suspended } = account;
    const numbers = `${limits.requests_per_minute}/min, ${limits.sandboxes}${custom_limits ? " *" : ""}`;
    return { cells: [id, email, name, tier, numbers, keys, sandboxes, ago(created_at), statusOf(account)], style: suspended ? ("red" as const) : undefined };
  });
  const titles = ["ID", "E-MAIL", "NAME", "TIER", "LIMITS", "KEYS", "SANDBOXES", "CREATED", "STATUS"];
  out.show(answer, () => out.table(titles, rows, "No accounts."));
}

async function show({ client, out, operands: [name = ""] }: Session): Promise<void> {
  const account = await client.call<AccountWithKeys>("GET", pathOf(await accountId(client, name)));
  out.show(account, () => {
    printAccount(out, account);
    out.line();
    keyTable(out, account.api_keys);
  });
}

async function set({ client, out, values, operands: [name = ""] }: Session): Promise<void> {
  const body = { ...limitChange(values), ...(values.operator === undefined ? {} : { operator: values.operator }) };
  if (Object.keys(body).length === 0) throw new UsageError("set needs at least one option, such as --tier pro");
  const account = await client.call<AccountWithKeys>("POST", pathOf(await accountId(client, name)), body);
  out.show(account, () => printAccount(out, account));
}

async function suspend(session: Session): Promise<void> {
  const [name = ""] = session.operands;
  await session.confirm(`Suspend ${name}? Its calls in progress end at once.`);
  await setSuspended(session, true);
}

async function setSuspended({ client, out, operands: [name = ""] }: Session, suspended: boolean): Promise<void> {
  const account = await client.call<AccountWithKeys>("POST", pathOf(await accountId(client, name)), { suspended });
  out.show(account, () => out.say(`${nameOf(account)} ${suspended ? "is suspended" : "may call again"}.`));
}

function printAccount(out: Output, account: AccountView): void {
  out.pairs([
    ["Account", account.id],
    ["E-mail", account.email],
    ["Name", account.name],
    ["Tier", account.tier],
    ["Limits of a key", limitsText(account.limits, account.custom_limits)],
    ["Status", statusOf(account) || "active"],
    ["Created", account.created_at],
    ["Active keys", account.keys],
    ["Sandboxes", account.sandboxes],
  ]);
}

const one = { min: 1, max: 1 } as const;

export const accountCommands: readonly Command[] = [
  { name: "accounts", takes: "", about: "list all accounts, or those with --email PART in their address", options: ["email"], min: 0, max: 0, run: list },
  { name: "account", takes: "ACCOUNT", about: "show one account with its keys", options: [], ...one, run: show },
  {
    name: "set",
    takes: "ACCOUNT",
    about: "change the tier, the limits or whether it is an operator",
    options: [...limitOptions, "operator"],
    ...one,
    run: set,
  },
  { name: "suspend", takes: "ACCOUNT", about: "refuse all of its calls, at once and everywhere", options: [], ...one, run: suspend },
  { name: "resume", takes: "ACCOUNT", about: "let a suspended account call again", options: [], ...one, run: (session) => setSuspended(session, false) },
];
