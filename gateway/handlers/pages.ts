/** The web pages: one HTML page for all of their paths, and the files that it loads. */
import { SandgateError } from "../../shared/errors.ts";
import type { GatewayContext } from "../context.ts";
import { type Asset, assetHeaders, pageHeaders, publicHeaders } from "../dashboard/files.ts";
import type { Exchange } from "../http/exchange.ts";

/** Paths at which a browser finds the page. What it shows there is decided in the browser. */
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

/** Kept by no browser: after a log-out the way back leads to nothing. */
export function page({ dashboard: { page } }: GatewayContext, exchange: Exchange): void {
  exchange.send(200, page.contentType, page.body, pageHeaders);
}

/** People who have followed a link to nowhere get the page, which says so; programs, and all that ask for a call, get an error. */
export function notFound({ dashboard: { page } }: GatewayContext, exchange: Exchange): void {
  if (isNavigation(exchange) && !exchange.path.startsWith(callsPrefix)) return exchange.send(404, page.contentType, page.body, pageHeaders);
  exchange.sendError(new SandgateError("not_found", "no such path", { reason: "no_such_path" }));
}

/** Whether a browser wants to show the answer as a page. */
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

export function favicon({ dashboard }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, dashboard.favicon);
}

/** A file from memory, or word that the browser has it already. */
export function sendAsset(exchange: Exchange, { body, contentType, etag }: Asset, baseHeaders = publicHeaders): void {
  const headers = { ...baseHeaders, etag };
  if (exchange.header("if-none-match").split(/, */).includes(etag)) exchange.send(304, "", "", headers);
  else exchange.send(200, contentType, body, headers);
}
