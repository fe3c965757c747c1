/** `stats` and `logs`. */
import type { Command } from "commander";
import { NotFoundError } from "../../client/errors.ts";
import type { Sandgate } from "../../client/index.ts";
import { entriesOf } from "../../client/pages.ts";
import type { LogEntry, Logs, LogsQuery, SandboxUsage } from "../../client/types.ts";
import { pause } from "../../waiting.ts";
import { UsageError } from "../failures.ts";
import { follow, limitMax } from "../follow.ts";
import { findSandbox } from "../names.ts";
import { clean, type Output, oneLine } from "../output.ts";
import { type CommonOptions, command, taskOf } from "../task.ts";
import { moment, whole } from "../values.ts";

const watchMs = 5_000;

interface Stat extends Omit<SandboxUsage, "history"> {
  readonly id: string;
}

async function stats(names: string[], options: CommonOptions & { watch?: true }): Promise<void> {
  const { client, out } = await taskOf(options);
  const ids = await Promise.all(names.map(async (name) => (await findSandbox(client, name)).id));
  for (;;) {
    const data = await usages(client, ids);
    if (options.watch && process.stdout.isTTY && !out.isJson) process.stdout.write("\u001b[H\u001b[2J");
    out.show({ data }, () => printStats(out, data));
    if (!options.watch) return;
    await pause(watchMs);
  }
}

/** The usage of the named sandboxes, else of all. */
async function usages(client: Sandgate, ids: readonly string[]): Promise<Stat[]> {
  const wanted = ids.length > 0 ? ids : (await client.sandboxes.list().all()).filter(({ info }) => info.status === "running").map(({ id }) => id);
  const from = new Date().toISOString();
  const found = await Promise.all(
    wanted.map((id) =>
      client
        .sandbox(id)
        .status({ from })
        .then(({ history: _history, ...usage }) => ({ id, ...usage }))
        .catch((error: unknown) => {
          // Deleted since the list was fetched.
          if (ids.length === 0 && error instanceof NotFoundError) return undefined;
          throw error;
        }),
    ),
  );
  return found.filter((stat) => stat !== undefined);
}

function printStats(out: Output, data: readonly Stat[]): void {
  out.table(
    ["ID", "NAME", "CPU", "MEMORY", "MEMORY %", "DISK", "PROCESSES"],
    data.map(({ id, sandbox_name, current }) => [
      id,
      sandbox_name,
      `${current.cpu_percent.toFixed(1)} %`,
      `${current.memory_mb.toFixed(1)} MiB`,
      `${current.memory_percent.toFixed(1)} %`,
      `${current.disk_mb.toFixed(1)} MiB`,
      current.processes,
    ]),
  );
}

interface LogOptions extends CommonOptions {
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly output?: true;
  readonly follow?: true;
}

async function logs(name: string | undefined, options: LogOptions): Promise<void> {
  const { since, until, limit } = options;
  if (options.follow && until) throw new UsageError("--follow runs until Ctrl-C: omit --until");
  const { client, out } = await taskOf(options);
  const sandbox = name === undefined ? {} : { sandbox_id: (await findSandbox(client, name)).id };
  const read = (query: LogsQuery): Promise<Logs> => client.sandboxes.logs({ ...sandbox, ...query });
  const answer = await newest(read, { ...(since ? { from: since } : {}), ...(until ? { to: until } : {}) }, limit);
  // Oldest first, as in any log.
  if (!options.follow) return out.show(answer, () => print(out, [...answer.logs].reverse(), options));
  for await (const entry of follow(read, answer, since)) {
    if (out.isJson) out.line(JSON.stringify(entry));
    else printOne(out, entry, options);
  }
}

/** The newest entries up to a limit, from as many pages as needed. */
async function newest(read: (query: LogsQuery) => Promise<Logs>, query: LogsQuery, limit: number): Promise<Logs> {
  let total = 0;
  const logs: LogEntry[] = [];
  const page = async (cursor: { cursor?: string }): Promise<Logs> => {
    const answer = await read({ ...query, ...cursor, limit: Math.min(limit - logs.length, limitMax) });
    total = answer.total;
    return answer;
  };
  for await (const entry of entriesOf(page)) {
    logs.push(entry);
    if (logs.length >= limit) break;
  }
  return { logs, total };
}

function print(out: Output, entries: readonly LogEntry[], options: LogOptions): void {
  if (options.output) for (const entry of entries) printOne(out, entry, options);
  else
    out.table(
      ["TIME", "SANDBOX", "HOW", "STATUS", "EXIT", "TOOK", "COMMAND"],
      entries.map((entry) => [
        entry.timestamp,
        entry.sandbox_id,
        entry.source,
        entry.status,
        entry.status === "running" ? "-" : entry.exit_code,
        entry.status === "running" ? "-" : `${entry.execution_time_ms} ms`,
        `${oneLine(entry.command)}${reasonOf(entry)}`,
      ]),
    );
}

/** Why the service ended a command. */
const reasonOf = ({ error }: LogEntry): string => (error ? `  [${oneLine(error, 200)}]` : "");

function printOne(out: Output, entry: LogEntry, { output }: LogOptions): void {
  const how = entry.status === "running" ? "running" : `${entry.status} (${entry.exit_code})`;
  out.line(clean(`${entry.timestamp}  ${how}  ${oneLine(entry.command, 100)}${reasonOf(entry)}`));
  if (output) for (const text of [entry.stdout, entry.stderr]) if (text) out.line(clean(text.replace(/\n$/, "")).replace(/^/gm, "    "));
}

export function usageCommands(): Command[] {
  return [
    command("stats [SANDBOX...]", "show the resource use of sandboxes").option("-w, --watch", "refresh until Ctrl-C").action(stats),
    command("logs [SANDBOX]", "show which commands ran and how they ended (kept for 7 days)")
      .option("--since <time>", "from this time on, or this long ago, such as 10m (default: an hour)", moment("--since"))
      .option("--until <time>", "up to this time", moment("--until"))
      .option("-n, --limit <n>", "only the newest n", whole("--limit", 1), 100)
      .option("-o, --output", "also show their output (up to 4 KiB of each stream)")
      .option("-f, --follow", "show commands as they start and end, until Ctrl-C")
      .action(logs),
  ];
}
