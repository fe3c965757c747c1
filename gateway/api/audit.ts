/** Audit log: one line for every call that changes something. Access log: one line for every request, if configured. */
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";
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

/** Logs one line for a finished call. */
export function audit(log: Logger, exchange: Exchange, { route, caller, address }: Begun): void {
  const target = exchange.params[0] ?? exchange.audited?.target;
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
      result: exchange.errorCode ?? (exchange.status ? "ok" : "aborted"),
      duration_ms: Math.round(performance.now() - exchange.startedAtMs),
    },
    "a call",
  );
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
