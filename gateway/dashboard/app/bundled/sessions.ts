/** Live sessions, as the client library has them. */
export { openLink } from "../../../../shared/client/session/link.ts";
export { Session } from "../../../../shared/client/session/session.ts";
export { openBrowserSocket } from "../../../../shared/client/session/socket-browser.ts";
export { closeReasons, detachTimeoutMaxS } from "../../../../shared/session/protocol.ts";
