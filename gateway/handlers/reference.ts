/** The reference: openapi.json for programs, a page for people. */
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { sendAsset } from "./pages.ts";

export function openApi({ dashboard }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, dashboard.document);
}

export function reference({ dashboard }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, dashboard.reference);
}
