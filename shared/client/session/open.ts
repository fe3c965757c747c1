/** Starting and joining sessions with an API key. */
import type { StartMessage } from "../../schemas/sessions.ts";
import { detachTimeoutDefaultS, detachTimeoutMaxS } from "../../stream/session/protocol.ts";
import type { Connection } from "../connection.ts";
import type { Dial } from "./link.ts";
import { Session } from "./session.ts";
import { type SessionListeners, splitListeners } from "./types.ts";

interface OpenOptions extends SessionListeners {
  /** Ends the opening; once the session is open, ends the command. */
  signal?: AbortSignal | undefined;
  /** Timeout for opening in milliseconds. */
  timeoutMs?: number | undefined;
}

/** What a new session runs; without a command, the login shell with a terminal. */
export interface SessionOptions extends OpenOptions {
  /** Run by `/bin/sh -c`. */
  command?: string | undefined;
  /** Whether to allocate a pseudo-terminal; defaults to true for the login shell and to false for a command. */
  tty?: boolean | undefined;
  cols?: number | undefined;
  rows?: number | undefined;
  env?: Record<string, string> | undefined;
  /** An absolute path. */
  working_dir?: string | undefined;
  /** Whole seconds that the session outlives its last connection, 0 to 3600; 60 by default. */
  detach_timeout?: number | undefined;
  /** Whole seconds after which the session and every process it started are killed, with exit code 124; unlimited when absent. */
  timeout?: number | undefined;
}

export interface AttachOptions extends OpenOptions {
  /**
   * Replays output from this offset, as far as it is still kept. For a terminal, queries that programs sent to it are left out.
   * Without `since`, only new output is sent.
   */
  since?: number | undefined;
  /** Takes write access from the client that has it. */
  takeover?: boolean | undefined;
  /** Never writes. */
  read_only?: boolean | undefined;
}

/** Added to the time that the session waits for us, so that the server gets to report that the session is gone. */
const reattachMarginMs = 15_000;

/** Never retried. @throws {APIError} */
export function startSession(connection: Connection, sandboxId: string, options: SessionOptions): Promise<Session> {
  const [listeners, { signal, timeoutMs, ...start }] = splitListeners(options);
  const reattachMs = (start.detach_timeout ?? detachTimeoutDefaultS) * 1_000 + reattachMarginMs;
  const first = { type: "start", ...defined(start) } as StartMessage;
  return kept(Session.open(dialer(connection, sandboxId, { signal, timeoutMs }), first, { ...listeners, reattachMs, readOnly: false }), signal);
}

/** @throws {APIError} */
export function attachSession(connection: Connection, sandboxId: string, sessionId: string, options: AttachOptions): Promise<Session> {
  const [listeners, { signal, timeoutMs, ...how }] = splitListeners(options);
  const reattachMs = detachTimeoutMaxS * 1_000;
  const first = { type: "attach" as const, session_id: sessionId, ...(defined(how) as { since?: number }) };
  const settings = { ...listeners, reattachMs, readOnly: how.read_only ?? false };
  return kept(Session.open(dialer(connection, sandboxId, { signal, timeoutMs }), first, settings), signal);
}

function dialer(connection: Connection, sandboxId: string, { signal, timeoutMs }: OpenOptions): Dial {
  const { platform, socketPath, credentials, timeoutMs: timeoutDefaultMs } = connection.settings;
  const url = connection.url(`/v1/sandboxes/${encodeURIComponent(sandboxId)}/session`);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  // After the opening, the signal ends the command, which needs a connection. So later connections must ignore it.
  let own = signal;
  return () => {
    const target = { url, socketPath, headers: credentials("GET"), timeoutMs: timeoutMs ?? timeoutDefaultMs, signal: own };
    own = undefined;
    return connection.whenAllowed(() => platform.openSocket(target), target.signal);
  };
}

/** Ends the session when the signal is aborted. */
async function kept(opening: Promise<Session>, signal: AbortSignal | undefined): Promise<Session> {
  const session = await opening;
  const kill = (): void => session.kill();
  if (signal?.aborted) kill();
  signal?.addEventListener("abort", kill, { once: true });
  const over = (): void => signal?.removeEventListener("abort", kill);
  session.exited.then(over, over);
  return session;
}

function defined<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Partial<T>;
}
