/** The states of a sandbox and the moves between them. */
import { movesBy } from "./moves.ts";

export const sandboxStates = ["creating", "running", "error", "deleting"] as const;
export type SandboxState = (typeof sandboxStates)[number];

export const sandboxEvents = ["started", "failed", "delete", "lost", "recovered"] as const;
export type SandboxEvent = (typeof sandboxEvents)[number];

export const nextSandboxState = movesBy<SandboxState, SandboxEvent>({
  creating: { started: "running", failed: "error", lost: "error" },
  running: { delete: "deleting", lost: "error", recovered: "running" },
  error: { delete: "deleting", recovered: "running", lost: "error" },
  deleting: { delete: "deleting", lost: "deleting" },
});
