/** The states of a live session and the moves between them. */
import { movesBy } from "./moves.ts";

/**
 * `ending`: all processes of the session are being killed, and its exit code is still to be reported. `lost`: its clients were
 * told that its end is unknown; what is left of its command is being killed.
 */
export const sessionStates = ["starting", "running", "ending", "lost", "ended"] as const;
export type SessionState = (typeof sessionStates)[number];

/** `started`: the command is running; `exited`: it has ended and all of its output has been read. */
export const sessionEvents = ["started", "stop", "lose", "exited"] as const;
export type SessionEvent = (typeof sessionEvents)[number];

export const nextSessionState = movesBy<SessionState, SessionEvent>({
  starting: { started: "running", stop: "ending", lose: "lost" },
  running: { stop: "ending", lose: "lost", exited: "ended" },
  // A session stopped or lost before its command runs is killed as soon as it does.
  ending: { started: "ending", stop: "ending", lose: "lost", exited: "ended" },
  lost: { started: "lost", stop: "lost", lose: "lost", exited: "ended" },
  ended: { stop: "ended", lose: "ended" },
});
