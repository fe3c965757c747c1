/** The reference: openapi.json for programs, a page for people. */
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import { sendAsset } from "./pages.ts";

export function openApi({ reference }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, reference.document);
}

export function reference({ reference }: GatewayContext, exchange: Exchange): void {
  sendAsset(exchange, reference.page);
}
