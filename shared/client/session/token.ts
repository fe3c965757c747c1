/** Sessions opened with a token where there must be no API key, as in browsers. A server that has the key requests the token. */
import type { AttachMessage, StartMessage } from "../../schemas/sessions.ts";
import { detachTimeoutMaxS } from "../../stream/session/protocol.ts";
import { gatewayUrl } from "../client.ts";
import type { Platform } from "../platform.ts";
import type { AttachOptions, SessionOptions } from "./open.ts";
import { Session } from "./session.ts";
import { splitListeners } from "./types.ts";

export interface TokenSession extends Omit<SessionOptions & AttachOptions, "signal"> {
  /** The gateway, such as `https://sandboxes.example.com`. */
  url: string;
  sandboxId: string;
  /**
   * From `POST /v1/sandboxes/{id}/session-token`. A token is good for one connection, so a session can be rejoined after a lost
   * connection only if this is a function that requests a new token.
   */
  token: string | (() => Promise<string>);
  /** The session to join; when absent, a new one is started. */
  sessionId?: string;
}

const timeoutDefaultMs = 60_000;

/** @throws {APIError} */
export function joinSession(platform: Platform, options: TokenSession): Promise<Session> {
  const [listeners, { url, sandboxId, token, sessionId, timeoutMs, since, takeover, read_only, ...start }] = splitListeners(options);
  const base = gatewayUrl(url);
  const target = new URL(`${base.href.replace(/\/$/, "")}/v1/sandboxes/${encodeURIComponent(sandboxId)}/session`);
  target.protocol = target.protocol === "https:" ? "wss:" : "ws:";
  const dial = async () => {
    const address = new URL(target);
    address.searchParams.set("token", typeof token === "string" ? token : await token());
    return platform.openSocket({ url: address, headers: {}, timeoutMs: timeoutMs ?? timeoutDefaultMs, signal: undefined });
  };
  const fields = sessionId === undefined ? { type: "start", ...start } : { type: "attach", session_id: sessionId, since, takeover, read_only };
  // JSON omits undefined fields.
  const first = fields as StartMessage | AttachMessage;
  const reattachMs = typeof token === "string" ? 0 : detachTimeoutMaxS * 1_000;
  return Session.open(dial, first, { ...listeners, reattachMs, readOnly: read_only ?? false });
}
