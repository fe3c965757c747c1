/**
 * Live sessions: their HTTP calls, and the control messages of their WebSocket, which are JSON in text frames. Unknown types
 * and, in client messages, unknown fields are refused.
 */
import Type, { type Static } from "typebox";
import { detachTimeoutMaxS, timeoutMaxS } from "../stream/session/protocol.ts";
import { EnvVars } from "./environment.ts";
import { Command, WorkingDir } from "./executions.ts";
import { component, count, ErrorCode, ErrorReason, flag, oneOf, text, textOrNull, time } from "./fields.ts";

/** For requests that a browser makes itself and cannot add headers to. The caller is authenticated before this is read. */
export const CallingAccount = Type.String({
  description: "For browsers: the account that the page belongs to, instead of the `x-sandgate-account` header.",
  maxLength: 64,
  takes: "the id of an account",
});

/** `token` replaces the API key. */
export const SessionQuery = Type.Object({
  token: Type.Optional(Type.String({ maxLength: 256, takes: "a session token" })),
  account: Type.Optional(CallingAccount),
});

export const SessionId = Type.String({ minLength: 1, maxLength: 64 });
export const SessionTokenBody = Type.Object({
  read_only: Type.Optional(flag("Whether the token's socket is read-only.")),
  session_id: Type.Optional(SessionId),
});
export type SessionTokenBody = Static<typeof SessionTokenBody>;

export const SessionToken = component(
  "SessionToken",
  { token: text("The token; it opens one WebSocket."), expires_at: time("When the token expires.") },
  "A token for one WebSocket, for clients such as browsers that must not hold the API key.",
);
export type SessionToken = Static<typeof SessionToken>;

export const SessionInfo = component(
  "Session",
  {
    session_id: text("The session's id, used to attach to it."),
    command: textOrNull("The command, cut to its beginning when longer than 4 KiB; null for the login shell."),
    command_bytes: Type.Optional(count("Length of the whole command in bytes, present when `command` is cut.")),
    tty: flag("Whether the session has a terminal."),
    created_at: time("When the session was started."),
    attached: count("Number of attached clients."),
    status: oneOf(["running", "ended"], { description: "`ended`: the last output and the exit code are still available." }),
  },
  "A live session of a sandbox.",
);
export type SessionInfo = Static<typeof SessionInfo>;
export const Sessions = component("Sessions", { data: Type.Array(SessionInfo, { description: "Newest first." }) });
export type Sessions = Static<typeof Sessions>;

const sideMax = 65_535;
const Side = Type.Integer({ minimum: 1, maximum: sideMax, takes: `between 1 and ${sideMax} (a whole number)` });
const Offset = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, takes: "a whole number from 0" });

/** Starts a command, or, without one, the login shell with a terminal. */
export const StartMessage = Type.Object({
  type: Type.Literal("start"),
  command: Type.Optional(Command),
  /** Whether to allocate a pseudo-terminal; defaults to true for the login shell and to false for a command. */
  tty: Type.Optional(Type.Boolean()),
  cols: Type.Optional(Side),
  rows: Type.Optional(Side),
  env: Type.Optional(EnvVars),
  working_dir: Type.Optional(WorkingDir),
  /** Seconds that the session outlives its last socket. */
  detach_timeout: Type.Optional(
    Type.Integer({ minimum: 0, maximum: detachTimeoutMaxS, takes: `between 0 and ${detachTimeoutMaxS} (a whole number of seconds)` }),
  ),
  /** Seconds after which the command and every process it started are killed; unlimited when absent. */
  timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: timeoutMaxS, takes: `between 1 and ${timeoutMaxS} (a whole number of seconds)` })),
});
export type StartMessage = Static<typeof StartMessage>;

/** Attaches to a session that is running, or that ended while no client was attached. */
export const AttachMessage = Type.Object({
  type: Type.Literal("attach"),
  session_id: SessionId,
  /** The offset from which output is replayed; when absent, only new output is sent. */
  since: Type.Optional(Offset),
  /** Takes write access from the client that has it. Without this, a client may write only if no other client does. */
  takeover: Type.Optional(Type.Boolean()),
  /** Never writes, even if no other client does. */
  read_only: Type.Optional(Type.Boolean()),
});
export type AttachMessage = Static<typeof AttachMessage>;

/** The size of the terminal: sent by the client that writes, and forwarded to the others, whose screens must use the same size. */
export const ResizeMessage = Type.Object({ type: Type.Literal("resize"), cols: Side, rows: Side });
/** A signal for the foreground process group of the terminal, or for the processes of the command: `SIGINT` or `INT`. */
export const SignalMessage = Type.Object({ type: Type.Literal("signal"), signal: Type.String({ maxLength: 16 }) });
/** End of input for the command: closes its standard input or, with a terminal, types Ctrl-D. */
export const StdinCloseMessage = Type.Object({ type: Type.Literal("stdin_close") });
/** Acknowledges all output before this offset. */
export const AckMessage = Type.Object({ type: Type.Literal("ack"), offset: Offset });
/** Ends the session and every process it started; `exit` still follows. */
export const KillMessage = Type.Object({ type: Type.Literal("kill") });
/** Closes this socket; the session goes on for its `detach_timeout`. */
export const DetachMessage = Type.Object({ type: Type.Literal("detach") });

/** What a client may send. `start` or `attach` must come first, and only then. */
export const ClientMessage = Type.Union([StartMessage, AttachMessage, ResizeMessage, SignalMessage, StdinCloseMessage, AckMessage, KillMessage, DetachMessage]);
export type ClientMessage = Static<typeof ClientMessage>;

/** The session is running, or this client is attached to it. */
export const StartedMessage = Type.Object({
  type: Type.Literal("started"),
  session_id: SessionId,
  tty: Type.Boolean(),
  /** The size of the terminal, if the session has one. */
  cols: Type.Optional(Side),
  rows: Type.Optional(Side),
  /** Whether this client may write, resize, signal and kill. */
  writer: Type.Boolean(),
  /** Offset of the next byte of output sent. A `gap` message reports output missing before it. */
  offset: Offset,
  /** The current end of the output: everything before this offset was written before this client attached. */
  output_offset: Offset,
  /** Total bytes of input that the session has accepted. A client that lost its socket resends from here. */
  input_offset: Offset,
  /** Seconds that the session outlives its last socket. */
  detach_timeout: Type.Number({ minimum: 0 }),
});
export type StartedMessage = Static<typeof StartedMessage>;

/** The command has ended. Comes once, after all of its output. */
export const ExitMessage = Type.Object({
  type: Type.Literal("exit"),
  /** The command's exit code: 128+n when signal n ended it, 124 when its `timeout` expired. */
  exit_code: Type.Integer(),
  /** Such as `SIGKILL`. */
  signal: Type.Optional(Type.String()),
  /** Why the service ended the command, such as a limit. */
  reason: Type.Optional(Type.String()),
});
export type ExitMessage = Static<typeof ExitMessage>;

/** The reason why the server closes the socket right after this message. */
export const ErrorMessage = Type.Object({
  type: Type.Literal("error"),
  code: ErrorCode,
  reason: Type.Optional(ErrorReason),
  message: Type.String(),
});
export type ErrorMessage = Static<typeof ErrorMessage>;

/** Output from offset `from` up to, but not including, `to` is no longer available. */
export const GapMessage = Type.Object({ type: Type.Literal("gap"), from: Offset, to: Offset });
export type GapMessage = Static<typeof GapMessage>;

/** Total bytes of input that have been passed to the command since the session began. */
export const InputAckMessage = Type.Object({ type: Type.Literal("input_ack"), offset: Offset });
export type InputAckMessage = Static<typeof InputAckMessage>;

export type ResizeMessage = Static<typeof ResizeMessage>;

/** What the server sends. */
export const ServerMessage = Type.Union([StartedMessage, ExitMessage, ErrorMessage, GapMessage, InputAckMessage, ResizeMessage]);
export type ServerMessage = Static<typeof ServerMessage>;
