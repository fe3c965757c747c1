/** Control messages of live sessions: JSON in text frames. Unknown types are refused, and unknown fields of what a client sends. */
import Type, { type Static } from "typebox";
import { detachTimeoutMaxS, timeoutMaxS } from "../stream/session/protocol.ts";
import { EnvVars } from "./environment.ts";
import { ErrorCode, ErrorReason } from "./errors.ts";
import { Command, WorkingDir } from "./executions.ts";
import { SessionId } from "./sessions.ts";

const sideMax = 65_535;
const Side = Type.Integer({ minimum: 1, maximum: sideMax, takes: `between 1 and ${sideMax} (a whole number)` });
const Offset = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, takes: "a whole number from 0" });

/** Starts a command; without one, the login shell with a terminal. */
export const StartMessage = Type.Object({
  type: Type.Literal("start"),
  command: Type.Optional(Command),
  /** A pseudo-terminal; false unless there is no command. */
  tty: Type.Optional(Type.Boolean()),
  cols: Type.Optional(Side),
  rows: Type.Optional(Side),
  env: Type.Optional(EnvVars),
  working_dir: Type.Optional(WorkingDir),
  /** Seconds that the session outlives its last socket. */
  detach_timeout: Type.Optional(
    Type.Integer({ minimum: 0, maximum: detachTimeoutMaxS, takes: `between 0 and ${detachTimeoutMaxS} (a whole number of seconds)` }),
  ),
  /** Seconds until the command and all that it started are killed; absent: never. */
  timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: timeoutMaxS, takes: `between 1 and ${timeoutMaxS} (a whole number of seconds)` })),
});
export type StartMessage = Static<typeof StartMessage>;

/** Joins a session that runs, or that has ended while nobody was there. */
export const AttachMessage = Type.Object({
  type: Type.Literal("attach"),
  session_id: SessionId,
  /** Replays output from this offset on; absent: only what comes from now on. */
  since: Type.Optional(Offset),
  /** Takes the pen from the client that has it. Without it a client writes only where nobody else does. */
  takeover: Type.Optional(Type.Boolean()),
  /** Never writes, also where nobody else does. */
  read_only: Type.Optional(Type.Boolean()),
});
export type AttachMessage = Static<typeof AttachMessage>;

/** The size of the terminal: from the client that writes, and to all others, whose screens it fits only in this size. */
export const ResizeMessage = Type.Object({ type: Type.Literal("resize"), cols: Side, rows: Side });
/** A signal for the foreground process group of the terminal, or for the processes of the command: `SIGINT` or `INT`. */
export const SignalMessage = Type.Object({ type: Type.Literal("signal"), signal: Type.String({ maxLength: 16 }) });
/** End-of-file for the command: its standard input is closed, or Ctrl-D is typed where it has a terminal. */
export const StdinCloseMessage = Type.Object({ type: Type.Literal("stdin_close") });
/** All output before this offset has been taken. */
export const AckMessage = Type.Object({ type: Type.Literal("ack"), offset: Offset });
/** Ends the session with everything it started; `exit` still follows. */
export const KillMessage = Type.Object({ type: Type.Literal("kill") });
/** Closes this socket; the session goes on for its `detach_timeout`. */
export const DetachMessage = Type.Object({ type: Type.Literal("detach") });

/** What a client may send. The first one must be `start` or `attach`, and no later one. */
export const ClientMessage = Type.Union([StartMessage, AttachMessage, ResizeMessage, SignalMessage, StdinCloseMessage, AckMessage, KillMessage, DetachMessage]);
export type ClientMessage = Static<typeof ClientMessage>;

/** The session runs, or this client is attached to it. */
export const StartedMessage = Type.Object({
  type: Type.Literal("started"),
  session_id: SessionId,
  tty: Type.Boolean(),
  /** The size of its terminal, where it has one. */
  cols: Type.Optional(Side),
  rows: Type.Optional(Side),
  /** Whether this client may write, resize, signal and kill. */
  writer: Type.Boolean(),
  /** Of the first byte of output that is sent next; what is missing before it is told by `gap`. */
  offset: Offset,
  /** Where the output ends now: what comes before this offset was made before this client came. */
  output_offset: Offset,
  /** Bytes of input that the session has accepted in all. A client that lost its socket sends what comes after. */
  input_offset: Offset,
  /** Seconds that the session outlives its last socket. */
  detach_timeout: Type.Number({ minimum: 0 }),
});
export type StartedMessage = Static<typeof StartedMessage>;

/** The command has ended. Comes once, after all of its output. */
export const ExitMessage = Type.Object({
  type: Type.Literal("exit"),
  /** The command's, 128+n when signal n ended it, or 124 when its `timeout` was over. */
  exit_code: Type.Integer(),
  /** Such as `SIGKILL`. */
  signal: Type.Optional(Type.String()),
  /** Why the service ended the command, such as a limit. */
  reason: Type.Optional(Type.String()),
});
export type ExitMessage = Static<typeof ExitMessage>;

/** Why the socket is closed right after this. */
export const ErrorMessage = Type.Object({
  type: Type.Literal("error"),
  code: ErrorCode,
  reason: Type.Optional(ErrorReason),
  message: Type.String(),
});
export type ErrorMessage = Static<typeof ErrorMessage>;

/** Output from offset `from` up to, not including, `to` is not kept any more. */
export const GapMessage = Type.Object({ type: Type.Literal("gap"), from: Offset, to: Offset });
export type GapMessage = Static<typeof GapMessage>;

/** Bytes of input that the command has been given in all since the session began. */
export const InputAckMessage = Type.Object({ type: Type.Literal("input_ack"), offset: Offset });
export type InputAckMessage = Static<typeof InputAckMessage>;

export type ResizeMessage = Static<typeof ResizeMessage>;

/** What the server sends. */
export const ServerMessage = Type.Union([StartedMessage, ExitMessage, ErrorMessage, GapMessage, InputAckMessage, ResizeMessage]);
export type ServerMessage = Static<typeof ServerMessage>;
