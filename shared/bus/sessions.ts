/** What crosses NATS for live sessions: calls to workers, their replies, and what a worker says on the stream of an attachment. */
import Type, { type Static } from "typebox";
import { StreamTarget } from "../bus/messages.ts";
import { errorCodes, errorReasons } from "../errors.ts";
import { Environment } from "../schemas/environment.ts";
import { ExitMessage, GapMessage, InputAckMessage, ResizeMessage, StartedMessage } from "../schemas/session-messages.ts";
import { closeReasons } from "../stream/session/protocol.ts";

const Id = Type.String({ minLength: 1, maxLength: 64 });
const Count = Type.Integer({ minimum: 0 });
const caller = { request_id: Id, account_id: Id, sandbox_id: Id };

/** Starts a session with its first attachment, which may write. Replies when the command runs; the rest comes on the stream. */
export const SessionStartCall = Type.Object({
  ...caller,
  session_id: Id,
  /** Absent: the login shell. */
  command: Type.Optional(Type.String()),
  terminal: Type.Optional(Type.Object({ cols: Count, rows: Count })),
  env: Environment,
  working_dir: Type.Optional(Type.String()),
  detach_ms: Count,
  /** Absent: it may take as long as it likes. */
  timeout_ms: Type.Optional(Count),
  to: StreamTarget,
});
export type SessionStartCall = Static<typeof SessionStartCall>;

/** Attaches another client. Replies at once; the rest comes on the stream. */
export const SessionAttachCall = Type.Object({
  ...caller,
  session_id: Id,
  since: Type.Optional(Count),
  takeover: Type.Boolean(),
  read_only: Type.Boolean(),
  to: StreamTarget,
});
export type SessionAttachCall = Static<typeof SessionAttachCall>;

export const SessionsCall = Type.Object(caller);
export type SessionsCall = Static<typeof SessionsCall>;

export const SessionSummary = Type.Object({
  session_id: Id,
  /** Null for the login shell; the beginning of a long one. */
  command: Type.Union([Type.String(), Type.Null()]),
  /** The length of a command of which `command` is only the beginning. */
  command_bytes: Type.Optional(Count),
  tty: Type.Boolean(),
  created_at_ms: Count,
  attached: Count,
  status: Type.Union([Type.Literal("running"), Type.Literal("ended")]),
});
export type SessionSummary = Static<typeof SessionSummary>;
export const SessionsReply = Type.Object({ sessions: Type.Array(SessionSummary) });

/** The worker has ended the attachment. */
export const ClosedNotice = Type.Object({
  type: Type.Literal("closed"),
  /** Absent: as the error code says. */
  reason: Type.Optional(Type.Enum(Object.keys(closeReasons) as (keyof typeof closeReasons)[])),
  code: Type.Enum([...errorCodes]),
  error_reason: Type.Optional(Type.Enum([...errorReasons])),
  message: Type.String(),
});
export type ClosedNotice = Static<typeof ClosedNotice>;

/** What a worker says on the stream of an attachment beside output, which comes as frames for the client. */
export const SessionNotice = Type.Union([StartedMessage, ExitMessage, GapMessage, InputAckMessage, ResizeMessage, ClosedNotice]);
export type SessionNotice = Static<typeof SessionNotice>;
