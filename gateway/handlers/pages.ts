/** What is answered to everybody: the web pages with the files that they load, the reference, and the health of the service. */
import { SandgateError } from "../../shared/errors.ts";
import type { Health, Readiness } from "../../shared/schemas/service.ts";
import type { GatewayContext } from "../context.ts";
import { type Asset, assetHeaders, pageHeaders, publicHeaders } from "../dashboard/files.ts";
import type { Exchange } from "../http/exchange.ts";
import { hostView } from "./views.ts";

/** The paths that serve the page. The browser decides what to show at each. */
export const pagePaths = [
  "/",
  "/login",
  "/signup",
  "/sandboxes",
  "/sandboxes/:id",
  "/sandboxes/:id/terminal",
  "/snapshots",
  "/settings",
  "/settings/keys",
  "/settings/account",
] as const;

const assetsPrefix = "/assets/";
const callsPrefix = "/v1/";

/** Sends the page. Browsers must not cache it, so that the back button shows nothing after a logout. */
export function page({ dashboard: { page } }: GatewayContext, exchange: Exchange): void {
  exchange.send(200, page.contentType, page.body, pageHeaders);
}

/** Answers an unknown path: browser navigation gets the page, which says so; programs and API paths get an error. */
export function notFound({ dashboard: { page } }: GatewayContext, exchange: Exchange): void {
  if (isNavigation(exchange) && !exchange.path.startsWith(callsPrefix)) return exchange.send(404, page.contentType, page.body, pageHeaders);
  exchange.sendError(new SandgateError("not_found", "no such path", { reason: "no_such_path" }));
}

/** Whether a browser wants to display the answer as a page. */
function isNavigation(exchange: Exchange): boolean {
  const isRead = exchange.method === "GET" || exchange.method === "HEAD";
  const isShown = ["", "navigate"].includes(exchange.header("sec-fetch-mode"));
  return isRead && isShown && /\btext\/html\b/i.test(exchange.header("accept"));
}

export function asset(context: GatewayContext, exchange: Exchange): void {
  const file = context.dashboard.assets.get(exchange.path.slice(assetsPrefix.length));
  if (!file) return notFound(context, exchange);
  sendAsset(exchange, file, assetHeaders);
}

/** Sends a file from memory, or 304 if the browser already has it. */
function sendAsset(exchange: Exchange, { body, contentType, etag }: Asset, baseHeaders = publicHeaders): void {
  const headers = { ...baseHeaders, etag };
  if (exchange.header("if-none-match").split(/, */).includes(etag)) exchange.send(304, "", "", headers);
  else exchange.send(200, contentType, body, headers);
}

/** Sends one of the files that have a path of their own. */
export const fileOf =
  (name: "favicon" | "document" | "reference") =>
  ({ dashboard }: GatewayContext, exchange: Exchange): void =>
    sendAsset(exchange, dashboard[name]);

export function health(_context: GatewayContext, exchange: Exchange): void {
  const answer: Health = { status: "ok" };
  exchange.sendJson(200, answer);
}

export function readiness(context: GatewayContext, exchange: Exchange): void {
  const nats = context.bus.connected;
  const workers = context.workers.workers().map(({ worker }) => ({
    id: worker.id,
    draining: worker.draining,
    ...hostView(worker),
  }));
  // Load balancers turn away from a gateway that is about to stop.
  const ready = nats && !context.shutdown.stopping && workers.some((worker) => !worker.draining);
  const answer: Readiness = { status: ready ? "ready" : "unavailable", nats, workers };
  exchange.sendJson(ready ? 200 : 503, answer, ready ? {} : { "retry-after": "2" });
}
