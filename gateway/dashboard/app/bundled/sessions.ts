/** Live sessions, as the client library has them. */
export { openLink } from "../../../../shared/client/session/link.ts";
export { Session } from "../../../../shared/client/session/session.ts";
export { openBrowserSocket } from "../../../../shared/client/session/socket-browser.ts";
export { closeReasons, detachTimeoutMaxS } from "../../../../shared/session/protocol.ts";

declare global {
  /** The client library runs in Node.js too, and asks whether this is it. */
  var process: { readonly versions?: { readonly node?: string } } | undefined;
}
