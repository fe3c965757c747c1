/** The span of a call, with the attributes that OpenTelemetry has for those of HTTP. */
import { type Attributes, areSpansRecorded, startServerSpan } from "../../shared/tracing/spans.ts";
import type { Exchange } from "../http/exchange.ts";

const methods: ReadonlySet<string> = new Set(["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"]);

/** Records a call from now to its end, which for a stream is that of the stream, and for a WebSocket the upgrade. */
export function recordCall(exchange: Exchange): void {
  if (!areSpansRecorded()) return;
  const method = methods.has(exchange.method) ? exchange.method : undefined;
  const route = exchange.endpoint?.path.replaceAll(/:(\w+)/g, "{$1}");
  const span = startServerSpan([method ?? "HTTP", route].filter(Boolean).join(" "), exchange.trace, () => ({
    "http.request.method": method ?? "_OTHER",
    "http.route": route,
    "sandgate.request.id": exchange.requestId,
    ...target(route, exchange.params),
  }));
  if (!span) return;
  exchange.trace = span.trace;
  exchange.onDone(() => {
    const { status, errorCode } = exchange;
    if (status) span.set({ "http.response.status_code": status });
    const type = errorCode ?? (status ? undefined : "aborted");
    span.end(type === undefined ? undefined : { type, isFault: status >= 500 });
  });
}

/** What the path names. Only ids of the usual form: a path is what a client has made of it. */
function target(route: string | undefined, [id = ""]: readonly string[]): Attributes {
  const kind = /^\/v1\/(sandbox|snapshot)(?:e?s)\/\{id\}/.exec(route ?? "")?.[1];
  return kind && /^\w{1,64}$/.test(id) ? { [`sandgate.${kind}.id`]: id } : {};
}
