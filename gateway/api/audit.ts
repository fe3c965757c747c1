/**
 * Audit log: one line for every call that changes something. Audit record: an entry, which outlives the log, for those that are
 * about accounts or the installation. Access log: one line for every request, if configured.
 */
import type { AuditRecordEntry } from "../../shared/schemas/admin/audit.ts";
import { isId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import type { CallRoute } from "./route.ts";

/** URL parameters that hold credentials. */
const secretParameters = new Set(["api_key", "token"]);

/** What is known of a call when it begins. */
interface Begun {
  readonly route: CallRoute;
  readonly caller: Caller | undefined;
  /** The client's. */
  readonly address: string;
}

/** Logs one line for a finished call, and records it if its route says so. */
export function audit({ log, auditRecord }: Pick<GatewayContext, "log" | "auditRecord">, exchange: Exchange, begun: Begun): void {
  const { route, caller, address } = begun;
  const target = targetOf(exchange);
  if (isRecorded(exchange, begun)) auditRecord.note(entryOf(exchange, begun));
  log.info(
    {
      event: "audit",
      action: `${route.method} ${route.path}`,
      account: caller?.account.id ?? exchange.audited?.account,
      by: caller?.label,
      address,
      ...(target ? { target } : {}),
      ...(exchange.audited?.made ? { made: exchange.audited.made } : {}),
      status: exchange.status,
      result: resultOf(exchange),
      duration_ms: Math.round(performance.now() - exchange.startedAtMs),
    },
    "a call",
  );
}

const targetOf = ({ params, audited }: Exchange): string | undefined => params[0] ?? audited?.target;
const resultOf = ({ errorCode, status }: Exchange): string => errorCode ?? (status ? "ok" : "aborted");

/**
 * Whether a call is in the record. What a stranger tries is in it only if it was about an account or a password was tried, which
 * has limits of its own, and nothing that a rate limit refuses: otherwise anybody could fill the record with what had no effect.
 */
function isRecorded({ errorCode, audited }: Exchange, { route, caller }: Begun): boolean {
  if (!route.recorded || errorCode === "rate_limited") return false;
  return caller !== undefined || audited !== undefined || errorCode === "unauthorized";
}

/** An id in a path can be any text. */
const targetCharsMax = 100;

function entryOf(exchange: Exchange, { route, caller, address }: Begun): AuditRecordEntry {
  const { audited, requestId } = exchange;
  const account = caller?.account.id ?? audited?.account ?? null;
  const target = targetOf(exchange)?.slice(0, targetCharsMax) ?? null;
  return {
    time: new Date().toISOString(),
    action: route.docs === "page" ? route.path : route.docs.name,
    outcome: resultOf(exchange),
    by: caller?.key ? "key" : account === null ? "stranger" : "browser",
    operator: caller?.account.operator ?? false,
    account_id: account,
    key_id: caller?.key?.id ?? null,
    address,
    target,
    target_account_id: audited?.owner ?? ownerOf(route, target, account),
    ...(audited?.change ? { change: audited.change } : {}),
    request_id: requestId,
  };
}

/** Where the handler does not say it: operators act on others, everybody else on what is their own. */
function ownerOf({ access }: CallRoute, target: string | null, account: string | null): string | null {
  if (access !== "operator") return account;
  return target !== null && isId("account", target) ? target : null;
}

/** Logs one line for an exchange when it is over. */
export function logWhenOver(log: Logger, exchange: Exchange, trustProxy: boolean): void {
  const begun = { event: "access", method: exchange.method, url: withoutSecrets(exchange.path, exchange.query), address: exchange.address(trustProxy) };
  exchange.onDone(() => {
    const duration_ms = Math.round(performance.now() - exchange.startedAtMs);
    log.info({ ...begun, status: exchange.status, duration_ms }, "a request");
  });
}

/** The URL with credentials redacted, for logs. */
function withoutSecrets(path: string, query: string): string {
  if (query === "") return path;
  const parts = query.split("&").map((part) => {
    const name = part.split("=", 1)[0] as string;
    return secretParameters.has(decoded(name)) ? `${name}=[redacted]` : part;
  });
  return `${path}?${parts.join("&")}`;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name).toLowerCase();
  } catch {
    return name;
  }
}
