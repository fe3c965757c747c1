/** The HTTP calls for live sessions. `session-messages.ts` has the messages of their WebSocket. */
import Type, { type Static } from "typebox";
import { component, count, flag, oneOf, text, textOrNull, time } from "./fields.ts";

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
