/** Sandbox status with history, and logs: pages across several workers, and the cursors between them. */
import { type LogEntry, logsPageBytesMax } from "../../shared/bus/contract/commands.ts";
import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import { type Logs, type LogsQuery, logsDefault, type SandboxUsage, type StatusQuery } from "../../shared/schemas/usage.ts";
import { isId } from "../../shared/util/ids.ts";
import type { Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { refOf } from "../fleet/placement.ts";
import { iso } from "./views.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Workers share the bytes of a page; each gets at least this, for a few entries. */
const shareBytesMin = 128 * 1024;

export async function sandboxStatus(context: GatewayContext, { by, id, query }: Call<StatusQuery, unknown>): Promise<SandboxUsage> {
  const { fromMs, toMs } = period(query, dayMs);
  const entry = await context.sandboxes.find(id, by.account_id);
  const call = { ...by, sandbox_id: id, from_ms: fromMs, to_ms: toMs };
  const { current, history } = await context.workers.call(context.workers.worker(entry.worker_id), "status", call);
  return {
    sandbox_name: entry.name,
    timestamp: iso(Date.now()),
    current,
    history: history.map(({ at_ms, cpu_percent, memory_mb }) => ({ timestamp: iso(at_ms), cpu_percent, memory_mb })),
  };
}

/** Merges the log pages of all workers, each of which keeps the log of its own executions. */
export async function sandboxLogs(context: GatewayContext, { by, query }: Call<LogsQuery, unknown>): Promise<Logs> {
  const cursor = query.cursor === undefined ? undefined : parseCursor(query.cursor);
  const { fromMs, toMs } = period(query, hourMs, cursor);
  const { sandbox_id, limit = logsDefault } = query;
  // An invalid sandbox id cannot have executions.
  const workers = sandbox_id === undefined || isId("sandbox", sandbox_id) ? context.workers.workers() : [];
  const bytes_max = Math.floor(Math.max(logsPageBytesMax / Math.max(1, workers.length), shareBytesMin));
  const call = { ...by, sandbox_id, from_ms: fromMs, to_ms: toMs, after: cursor?.after, limit, bytes_max };
  const pages = await Promise.all(workers.map((worker) => context.workers.call(refOf(worker), "logs", call)));
  const { logs, total, more } = mergePages(pages, limit);
  const last = logs.at(-1);
  const next = more && last ? { next_cursor: cursorText({ fromMs, toMs, after: last }) } : {};
  return { logs: logs.map(present), total, ...next };
}

function present({ account_id: _account, started_at_ms, command_bytes, stdout_truncated, stderr_truncated, ...entry }: LogEntry): Logs["logs"][number] {
  return {
    ...entry,
    ...(command_bytes === undefined ? {} : { command_truncated: true, command_bytes }),
    timestamp: iso(started_at_ms),
    ...(stdout_truncated ? { stdout_truncated } : {}),
    ...(stderr_truncated ? { stderr_truncated } : {}),
  };
}

/** @param before the period of the previous page, if this continues it */
function period(query: { from?: string; to?: string }, defaultMs: number, before?: Period): Period {
  const toMs = instant("to", query.to) ?? before?.toMs ?? Date.now();
  const fromMs = instant("from", query.from) ?? before?.fromMs ?? Math.max(0, toMs - defaultMs);
  if (fromMs > toMs) throw new SandgateError("invalid_request", "from must not be later than to");
  return { fromMs, toMs };
}

/** Milliseconds since 1970. A time without a zone is taken as UTC, like all times of the API. @throws {SandgateError} `invalid_request` */
export function instant(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const atMs = Date.parse(/T.*(Z|[+-]\d{2}:?\d{2})$/.test(text) || !text.includes("T") ? text : `${text}Z`);
  if (Number.isNaN(atMs) || atMs < 0) throw new SandgateError("invalid_request", `${name} must be an ISO 8601 time such as 2026-01-31T12:00:00Z`);
  return atMs;
}

/** A period of time, both ends included. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Where the next page begins: after an entry, in the period of the previous page. */
interface Cursor extends Period {
  readonly after: NonNullable<Request<"logs">["after"]>;
}

const cursorPattern = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.([a-z]{1,16}_[0-9a-z]{1,40})$/;

export const cursorText = ({ fromMs, toMs, after }: Cursor): string =>
  Buffer.from([fromMs, toMs, after.started_at_ms, after.execution_id].join(".")).toString("base64url");

/** @throws {SandgateError} `invalid_request` */
export function parseCursor(text: string): Cursor {
  const [, from, to, started, execution_id] = cursorPattern.exec(Buffer.from(text, "base64url").toString("latin1")) ?? [];
  if (execution_id === undefined) throw new SandgateError("invalid_request", "cursor must be the next_cursor of an earlier answer");
  return { fromMs: Number(from), toMs: Number(to), after: { started_at_ms: Number(started), execution_id } };
}

/**
 * The newest entries of all pages, up to the limit. If a worker's page was cut short, its next entries are unknown, so no
 * entry older than the last one of such a page is taken.
 */
export function mergePages(pages: readonly Reply<"logs">[], limit: number): Reply<"logs"> {
  const all = pages.flatMap(({ logs }) => logs).sort(newestFirst);
  const ends = pages.flatMap(({ logs, more }) => (more ? logs.slice(-1) : [])).sort(newestFirst);
  const known = ends[0] ? all.indexOf(ends[0]) + 1 : all.length;
  const logs = all.slice(0, Math.min(known, limit));
  return { logs, total: pages.reduce((sum, { total }) => sum + total, 0), more: ends.length > 0 || logs.length < all.length };
}

const newestFirst = (one: LogEntry, other: LogEntry): number => other.started_at_ms - one.started_at_ms || (one.execution_id < other.execution_id ? 1 : -1);
