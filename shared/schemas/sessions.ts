/** The calls about live sessions. What goes over their WebSocket is in `session-messages.ts`. */
import Type, { type Static } from "typebox";
import { component, count, flag, oneOf, text, textOrNull, time } from "./fields.ts";

/** Of calls that a browser makes by itself and can give no header. Who calls is known before it is read. */
export const CallingAccount = Type.String({
  description: "For browsers: the account that the page belongs to, in place of the header `x-sandgate-account`.",
  maxLength: 64,
  takes: "the id of an account",
});

/** `token` stands in place of a key. */
export const SessionQuery = Type.Object({
  token: Type.Optional(Type.String({ maxLength: 256, takes: "a session token" })),
  account: Type.Optional(CallingAccount),
});

export const SessionId = Type.String({ minLength: 1, maxLength: 64 });
export const SessionTokenBody = Type.Object({
  read_only: Type.Optional(flag("The token's socket may only read.")),
  session_id: Type.Optional(SessionId),
});
export type SessionTokenBody = Static<typeof SessionTokenBody>;

export const SessionToken = component(
  "SessionToken",
  { token: text("Good for one WebSocket."), expires_at: time("When it is no longer good.") },
  "For one WebSocket, such as that of a browser, which must not have the key.",
);
export type SessionToken = Static<typeof SessionToken>;

export const SessionInfo = component(
  "Session",
  {
    session_id: text("To attach by."),
    command: textOrNull("What runs, its beginning where it is longer than 4 KiB; null for the login shell."),
    command_bytes: Type.Optional(count("The length of the command where `command` is only its beginning.")),
    tty: flag("Whether it has a terminal."),
    created_at: time("When it was started."),
    attached: count("Clients now."),
    status: oneOf(["running", "ended"], { description: "`ended`: its last output and its exit code can still be had." }),
  },
  "A live session of a sandbox.",
);
export type SessionInfo = Static<typeof SessionInfo>;
export const Sessions = component("Sessions", { data: Type.Array(SessionInfo, { description: "Newest first." }) });
export type Sessions = Static<typeof Sessions>;
