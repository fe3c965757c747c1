/** Pages of the execution log across several workers, and the cursors between them. */

import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";

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
