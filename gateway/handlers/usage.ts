/** Sandbox status with history, and logs. */

import type { Static } from "typebox";
import { type LogEntry, logsPageBytesMax } from "../../shared/bus/contract/commands.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Logs, SandboxUsage } from "../../shared/schemas/usage.ts";
import { type LogsQuery, logsDefault, type StatusQuery } from "../../shared/schemas/usage.ts";
import { isId } from "../../shared/util/ids.ts";
import type { Call } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import { cursorText, mergePages, type Period, parseCursor } from "../fleet/log-pages.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Workers share the bytes of a page; each gets at least this, for a few entries. */
const shareBytesMin = 128 * 1024;

const iso = (atMs: number): string => new Date(atMs).toISOString();

export async function sandboxStatus(context: GatewayContext, { by, id, query }: Call<Static<typeof StatusQuery>, unknown>): Promise<SandboxUsage> {
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
export async function sandboxLogs(context: GatewayContext, { by, query }: Call<Static<typeof LogsQuery>, unknown>): Promise<Logs> {
  const cursor = query.cursor === undefined ? undefined : parseCursor(query.cursor);
  const { fromMs, toMs } = period(query, hourMs, cursor);
  const { sandbox_id, limit = logsDefault } = query;
  // An invalid sandbox id cannot have executions.
  const workers = sandbox_id === undefined || isId("sandbox", sandbox_id) ? context.workers.workers() : [];
  const bytes_max = Math.floor(Math.max(logsPageBytesMax / Math.max(1, workers.length), shareBytesMin));
  const call = { ...by, sandbox_id, from_ms: fromMs, to_ms: toMs, after: cursor?.after, limit, bytes_max };
  const pages = await Promise.all(workers.map(({ peer, worker }) => context.workers.call({ id: worker.id, peer }, "logs", call)));
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

/** A time without a zone is taken as UTC, like all times of the API. */
function instant(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const atMs = Date.parse(/T.*(Z|[+-]\d{2}:?\d{2})$/.test(text) || !text.includes("T") ? text : `${text}Z`);
  if (Number.isNaN(atMs) || atMs < 0) throw new SandgateError("invalid_request", `${name} must be an ISO 8601 time such as 2026-01-31T12:00:00Z`);
  return atMs;
}
