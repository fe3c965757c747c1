/** The states of a live session and the moves between them. */
import type { Moves } from "./moves.ts";

/**
 * `ending`: everything of it is being killed, and its exit code is still told. `lost`: its clients were told that nobody knows
 * how it ended; what is left of its command is being killed.
 */
export const sessionStates = ["starting", "running", "ending", "lost", "ended"] as const;
export type SessionState = (typeof sessionStates)[number];

/** `started`: its command runs; `exited`: it has ended, and all of its output was read. */
export const sessionEvents = ["started", "stop", "lose", "exited"] as const;
export type SessionEvent = (typeof sessionEvents)[number];

const moves: Moves<SessionState, SessionEvent> = {
  starting: { started: "running", stop: "ending", lose: "lost" },
  running: { stop: "ending", lose: "lost", exited: "ended" },
  // What is stopped or lost before it runs is killed as soon as it does.
  ending: { started: "ending", stop: "ending", lose: "lost", exited: "ended" },
  lost: { started: "lost", stop: "lost", lose: "lost", exited: "ended" },
  ended: { stop: "ended", lose: "ended" },
};

/** The state after the event, or undefined when the event is not allowed in this state. */
export const nextSessionState = (state: SessionState, event: SessionEvent): SessionState | undefined => moves[state][event];
