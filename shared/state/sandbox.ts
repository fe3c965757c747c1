/** The states of a sandbox and the moves between them. */
import type { Moves } from "./moves.ts";

export const sandboxStates = ["creating", "running", "error", "deleting"] as const;
export type SandboxState = (typeof sandboxStates)[number];

export const sandboxEvents = ["started", "failed", "delete", "lost", "recovered"] as const;
export type SandboxEvent = (typeof sandboxEvents)[number];

const moves: Moves<SandboxState, SandboxEvent> = {
  creating: { started: "running", failed: "error", lost: "error" },
  running: { delete: "deleting", lost: "error", recovered: "running" },
  error: { delete: "deleting", recovered: "running", lost: "error" },
  deleting: { delete: "deleting", lost: "deleting" },
};

/** The state after the event, or undefined when the event is not allowed in this state. */
export const nextSandboxState = (state: SandboxState, event: SandboxEvent): SandboxState | undefined => moves[state][event];
