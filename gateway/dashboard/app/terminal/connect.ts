/** Starting and joining live sessions as the browser that is logged in: its cookie goes along with the socket. */

import { Session, type TerminalSize } from "../../../../shared/client/session/session.ts";
import { openBrowserSocket } from "../../../../shared/client/session/socket-browser.ts";
import { detachTimeoutMaxS } from "../../../../shared/stream/session/protocol.ts";
import { APIError, call, ownAddress } from "../api.ts";

declare global {
  /** The client library runs in Node.js too, and asks whether this is it. */
  var process: { readonly versions?: { readonly node?: string } } | undefined;
}

const openMs = 20_000;
/** Beyond the time that a session waits for us, so that it is the server that says that it is gone. */
const reattachMs = (detachTimeoutMaxS + 15) * 1_000;
const terminalName = "xterm-256color";

export interface Listeners {
  /** Output from one offset up to another is not kept any more. */
  readonly onGap: (from: number, to: number) => void;
  readonly onConnection: (isConnected: boolean) => void;
  /** The one who writes has given the terminal another size. */
  readonly onResize: (size: TerminalSize) => void;
}

/** A login shell that lives on for an hour when nobody is connected, or for as long as this server allows. */
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
  /** Output from this offset on is sent, as far as it is kept. */
  readonly since: number;
  /** `watch`: never write; `write`: where nobody else does; `take`: also where somebody else does. */
  readonly as: "watch" | "write" | "take";
}

export function joinShell(sandboxId: string, { sessionId, since, as }: Joining, listeners: Listeners): Promise<Session> {
  const how = as === "watch" ? { read_only: true } : as === "take" ? { takeover: true } : {};
  const first = { type: "attach", session_id: sessionId, since, ...how } as const;
  return Session.open(() => dial(sandboxId), first, { ...listeners, reattachMs, readOnly: as === "watch" });
}

/** Browsers do not tell why a socket was refused; a call about the same sandbox does, such as that nobody is logged in any more. */
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
