/** The operator's calls about the audit record. */
import { type AuditPage, type AuditQuery, type AuditRecordEntry, auditDefault } from "../../../shared/schemas/admin/audit.ts";
import type { Call } from "../../call.ts";
import type { GatewayContext } from "../../context.ts";
import { instant } from "../usage.ts";

/** Who changed what, newest first. @throws {SandgateError} `invalid_request` for a time that is none, `unavailable` */
export async function listAudit({ auditRecord }: GatewayContext, { query }: Call<AuditQuery, unknown>): Promise<AuditPage> {
  const { account_id, limit = auditDefault, cursor } = query;
  const [fromMs, toMs] = [instant("from", query.from) ?? 0, instant("to", query.to) ?? Number.POSITIVE_INFINITY];
  const isWanted = (entry: AuditRecordEntry): boolean => {
    const atMs = Date.parse(entry.time);
    const isOf = account_id === undefined || entry.account_id === account_id || entry.target_account_id === account_id;
    return isOf && atMs >= fromMs && atMs <= toMs;
  };
  const before = cursor === undefined ? undefined : Number(cursor);
  const { entries, next } = await auditRecord.search({ isWanted, fromMs, before, limit });
  return { data: entries, ...(next === undefined ? {} : { next_cursor: String(next) }) };
}
