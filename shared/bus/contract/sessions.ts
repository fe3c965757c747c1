/** Calls to workers about live sessions, and what a worker says on the stream of an attachment. */
import Type, { type Static } from "typebox";
import { errorCodes, errorReasons } from "../../errors.ts";
import { Environment } from "../../schemas/environment.ts";
import { ExitMessage, GapMessage, InputAckMessage, ResizeMessage, StartedMessage } from "../../schemas/sessions.ts";
import { closeReasons } from "../../stream/session/protocol.ts";
import type { Declared } from "./declared.ts";
import { Count, caller, Empty, Id, StreamTarget } from "./fields.ts";

const SessionSummary = Type.Object({
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

/** The worker has ended the attachment. */
const ClosedNotice = Type.Object({
  type: Type.Literal("closed"),
  /** Absent: as the error code says. */
  reason: Type.Optional(Type.Enum(Object.keys(closeReasons) as (keyof typeof closeReasons)[])),
  code: Type.Enum([...errorCodes]),
  error_reason: Type.Optional(Type.Enum([...errorReasons])),
  message: Type.String(),
});
export type ClosedNotice = Static<typeof ClosedNotice>;

/** What a worker says on the stream of an attachment beside output, which comes as frames for the client. */
const SessionNotice = Type.Union([StartedMessage, ExitMessage, GapMessage, InputAckMessage, ResizeMessage, ClosedNotice]);
export type SessionNotice = Static<typeof SessionNotice>;

const ofSandbox = { ...caller, sandbox_id: Id };

export const sessionCalls = {
  /** Starts a session with its first attachment, which may write. Replies when the command runs. */
  sessionStart: {
    request: Type.Object({
      ...ofSandbox,
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
    }),
    reply: Empty,
    stream: { notice: SessionNotice },
    timeoutMs: 30_000,
  },
  /** Attaches another client. Replies at once. */
  sessionAttach: {
    request: Type.Object({
      ...ofSandbox,
      session_id: Id,
      since: Type.Optional(Count),
      takeover: Type.Boolean(),
      read_only: Type.Boolean(),
      to: StreamTarget,
    }),
    reply: Empty,
    stream: { notice: SessionNotice },
    timeoutMs: 30_000,
  },
  sessions: { request: Type.Object(ofSandbox), reply: Type.Object({ sessions: Type.Array(SessionSummary) }), timeoutMs: 30_000 },
} satisfies Declared;
