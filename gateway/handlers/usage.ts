/** status (with history) and logs. */
import type { Static } from "typebox";
import { SandgateError } from "../../shared/errors.ts";
import type { LogsQuery, StatusQuery } from "../../shared/schemas/api.ts";
import { type LogEntry, LogsReply, StatusReply } from "../../shared/schemas/messages.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { GatewayContext } from "../context.ts";
import type { Call } from "../routes.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const logsDefault = 100;
const callTimeoutMs = 30_000;

const checkStatus = checker(StatusReply);
const checkLogs = checker(LogsReply);
const iso = (atMs: number): string => new Date(atMs).toISOString();

export async function sandboxStatus(context: GatewayContext, { exchange, by, id, query }: Call<Static<typeof StatusQuery>, unknown>): Promise<void> {
  const { fromMs, toMs } = period(query, dayMs);
  const entry = await context.sandboxes.find(id, by.account_id);
  const call = { ...by, sandbox_id: id, from_ms: fromMs, to_ms: toMs };
  const { current, history } = await context.workers.call(context.workers.worker(entry.worker_id), "status", call, checkStatus, callTimeoutMs);
  exchange.sendJson(200, {
    sandbox_name: entry.name,
    timestamp: iso(Date.now()),
    current,
    history: history.map(({ at_ms, cpu_percent, memory_mb }) => ({ timestamp: iso(at_ms), cpu_percent, memory_mb })),
  });
}

/** Every worker keeps the log of what ran on it; the newest of all are merged. */
export async function sandboxLogs(context: GatewayContext, { exchange, by, query }: Call<Static<typeof LogsQuery>, unknown>): Promise<void> {
  const { fromMs, toMs } = period(query, hourMs);
  const limit = query.limit ?? logsDefault;
  const call = { ...by, ...(query.sandbox_id ? { sandbox_id: query.sandbox_id } : {}), from_ms: fromMs, to_ms: toMs, limit };
  const replies = await Promise.all(
    context.workers.workers().map(({ peer, worker }) => context.workers.call({ id: worker.id, peer }, "logs", call, checkLogs, callTimeoutMs)),
  );
  const logs = replies.flatMap((reply) => reply.logs).sort((a, b) => b.started_at_ms - a.started_at_ms || (a.execution_id < b.execution_id ? 1 : -1));
  exchange.sendJson(200, { logs: logs.slice(0, limit).map(present), total: replies.reduce((sum, reply) => sum + reply.total, 0) });
}

function present({ account_id: _account, started_at_ms, stdout_truncated, stderr_truncated, ...entry }: LogEntry): object {
  return {
    ...entry,
    timestamp: iso(started_at_ms),
    ...(stdout_truncated ? { stdout_truncated } : {}),
    ...(stderr_truncated ? { stderr_truncated } : {}),
  };
}

function period(query: { from?: string; to?: string }, defaultMs: number): { fromMs: number; toMs: number } {
  const toMs = instant("to", query.to) ?? Date.now();
  const fromMs = instant("from", query.from) ?? Math.max(0, toMs - defaultMs);
  if (fromMs > toMs) throw new SandgateError("invalid_request", "from must not be later than to");
  return { fromMs, toMs };
}

/** A time without a zone is meant as UTC, as all times of the API are. */
function instant(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const atMs = Date.parse(/T.*(Z|[+-]\d{2}:?\d{2})$/.test(text) || !text.includes("T") ? text : `${text}Z`);
  if (Number.isNaN(atMs) || atMs < 0) throw new SandgateError("invalid_request", `${name} must be an ISO 8601 time such as 2026-01-31T12:00:00Z`);
  return atMs;
}
