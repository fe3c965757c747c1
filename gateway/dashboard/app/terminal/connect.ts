/** Starts and joins live sessions as the logged-in browser, whose cookie is sent with the WebSocket. */

import { openBrowserSocket } from "../../../../shared/client/platform-browser.ts";
import { Session, type TerminalSize } from "../../../../shared/client/session/session.ts";
import { detachTimeoutMaxS } from "../../../../shared/stream/session/protocol.ts";
import { APIError, call, ownAddress } from "../api.ts";

declare global {
  /** The client library also runs in Node.js, and checks for it. */
  var process: { readonly versions?: { readonly node?: string } } | undefined;
}

const openMs = 20_000;
/** Longer than any detach timeout, so that the server, not the client, reports that the session is gone. */
const reattachMs = (detachTimeoutMaxS + 15) * 1_000;
const terminalName = "xterm-256color";

export interface Listeners {
  /** Called when output between two offsets is no longer kept. */
  readonly onGap: (from: number, to: number) => void;
  readonly onConnection: (isConnected: boolean) => void;
  /** Called when the writer has resized the terminal. */
  readonly onResize: (size: TerminalSize) => void;
}

/** Starts a login shell that keeps running without a client for an hour, or for as long as this server allows. */
export async function startShell(sandboxId: string, size: TerminalSize, listeners: Listeners): Promise<Session> {
  try {
    return await start(sandboxId, size, listeners, detachTimeoutMaxS);
  } catch (error) {
    const allowed = /detach_timeout must be between 0 and (\d+)/.exec(String(error))?.[1];
    if (allowed === undefined) throw error;
    return start(sandboxId, size, listeners, Number(allowed));
  }
}

function start(sandboxId: string, { cols, rows }: TerminalSize, listeners: Listeners, detach_timeout: number): Promise<Session> {
  const first = { type: "start", tty: true, cols, rows, env: { TERM: terminalName }, detach_timeout } as const;
  return Session.open(() => dial(sandboxId), first, { ...listeners, reattachMs, readOnly: false });
}

export interface Joining {
  readonly sessionId: string;
  /** The offset from which output is replayed, as far as it is kept. */
  readonly since: number;
  /** `watch`: read only. `write`: write if nobody else does. `take`: take over from the current writer. */
  readonly as: "watch" | "write" | "take";
}

export function joinShell(sandboxId: string, { sessionId, since, as }: Joining, listeners: Listeners): Promise<Session> {
  const how = as === "watch" ? { read_only: true } : as === "take" ? { takeover: true } : {};
  const first = { type: "attach", session_id: sessionId, since, ...how } as const;
  return Session.open(() => dial(sandboxId), first, { ...listeners, reattachMs, readOnly: as === "watch" });
}

/** Opens the WebSocket. Browsers hide why a socket was refused, so a plain call on the sandbox finds out, such as a missing login. */
async function dial(sandboxId: string): ReturnType<typeof openBrowserSocket> {
  const path = `/v1/sandboxes/${encodeURIComponent(sandboxId)}`;
  const url = ownAddress(`${path}/session`);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  try {
    return await openBrowserSocket({ url, headers: {}, timeoutMs: openMs, signal: undefined });
  } catch (error) {
    const answer: unknown = await call("GET", path).catch((reason: unknown) => reason);
    throw answer instanceof APIError ? answer : error;
  }
}
