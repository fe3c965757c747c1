/** The web pages: one HTML page for all of their paths, and the files that it loads. */
import { SandgateError } from "../../shared/errors.ts";
import type { GatewayContext } from "../context.ts";
import { type Asset, assetHeaders, pageHeaders } from "../dashboard/files.ts";
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

export function page({ dashboard }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, dashboard.page);
}

/** @throws {SandgateError} `not_found`. */
export function asset({ dashboard }: GatewayContext, exchange: Exchange): void {
  const file = dashboard.assets.get(exchange.path.slice(assetsPrefix.length));
  if (!file) throw new SandgateError("not_found", "no such path");
  sendAsset(exchange, file, assetHeaders);
}

export function favicon({ dashboard }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, dashboard.favicon);
}

/** A file from memory, or word that the browser has it already. */
export function sendAsset(exchange: Exchange, { body, contentType, etag }: Asset, baseHeaders = pageHeaders): void {
  const headers = { ...baseHeaders, etag };
  if (exchange.header("if-none-match").split(/, */).includes(etag)) exchange.send(304, "", "", headers);
  else exchange.send(200, contentType, body, headers);
}
