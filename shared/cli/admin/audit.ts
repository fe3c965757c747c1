/** audit. */
import type { Command } from "commander";
import type { AuditEntry, AuditQuery } from "../../client/types.ts";
import { pause } from "../../waiting.ts";
import { clean, type Output } from "../output.ts";
import { given } from "../task.ts";
import { moment, whole } from "../values.ts";
import { type AdminOptions, type AdminTask, accountId, doing } from "./task.ts";

const pollMs = 3_000;

interface AuditOptions extends AdminOptions {
  readonly account?: string;
  readonly since?: string;
  readonly limit: number;
  readonly follow?: true;
}

async function show(task: AdminTask, { account, since, limit, follow }: AuditOptions): Promise<void> {
  const { client, out } = task;
  const filter: AuditQuery = given({ account_id: account === undefined ? undefined : await accountId(task, account), from: since });
  const newest: AuditEntry[] = [];
  for await (const entry of client.admin.audit.list(filter)) {
    newest.push(entry);
    if (newest.length >= limit) break;
  }
  // Oldest first, as in any log.
  const entries = [...newest].reverse();
  if (!follow) return out.show({ data: newest }, () => out.table(titles, entries.map(row), "No entries."));
  for (const entry of entries) printOne(out, entry);
  await goOn(task, filter, newest[0]?.sequence ?? 0);
}

/** Prints what is recorded from now on. Never ends. */
async function goOn({ client, out }: AdminTask, filter: AuditQuery, from: number): Promise<never> {
  for (let known = from; ; ) {
    await pause(pollMs);
    const news: AuditEntry[] = [];
    for await (const entry of client.admin.audit.list(filter)) {
      if (entry.sequence <= known) break;
      news.push(entry);
    }
    known = news[0]?.sequence ?? known;
    for (const entry of news.reverse()) printOne(out, entry);
  }
}

const titles = ["TIME", "ACTION", "OUTCOME", "BY", "ACCOUNT", "TARGET", "ADDRESS", "REQUEST"];

function row({ time, action, outcome, by, operator, account_id, key_id, target, target_account_id, change, address, request_id }: AuditEntry) {
  const who = `${operator ? "operator, " : ""}${key_id ?? by}`;
  const what = `${target ?? target_account_id ?? "-"}${change ? ` ${JSON.stringify(change)}` : ""}`;
  return { cells: [time, action, outcome, who, account_id, what, address, request_id], style: outcome === "ok" ? undefined : ("yellow" as const) };
}

function printOne(out: Output, entry: AuditEntry): void {
  if (out.isJson) out.line(JSON.stringify(entry));
  else
    out.line(
      clean(
        row(entry)
          .cells.map((cell) => cell ?? "-")
          .join("  "),
      ),
    );
}

export function addAuditCommand(admin: Command): void {
  admin
    .command("audit")
    .description("show who changed accounts, keys, limits, workers and images, and who logged in")
    .option("--account <account>", "only what this account did, and what was done to it")
    .option("--since <time>", "from this time on, or this long ago, such as 10m or 7d", moment("--since"))
    .option("-n, --limit <n>", "only the newest n", whole("--limit", 1), 100)
    .option("-f, --follow", "go on with what is recorded from now on, until Ctrl-C")
    .action(doing(show));
}
