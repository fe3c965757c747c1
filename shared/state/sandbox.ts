/** The states of a sandbox and the moves between them. */
import { movesBy } from "./moves.ts";

/** `moving`: it stands still, on its way to another worker, which is to have it once a gateway has decided so. */
export const sandboxStates = ["creating", "running", "moving", "error", "deleting"] as const;
export type SandboxState = (typeof sandboxStates)[number];

/** `leave`: its worker holds it for another one; `arrive`: what a copy is made from is there, and then the copy itself, which waits; `stay`: the worker that has it keeps it. */
export const sandboxEvents = ["started", "failed", "leave", "arrive", "stay", "delete", "lost", "recovered"] as const;
export type SandboxEvent = (typeof sandboxEvents)[number];

export const nextSandboxState = movesBy<SandboxState, SandboxEvent>({
  creating: { started: "running", arrive: "moving", failed: "error", lost: "error" },
  running: { leave: "moving", delete: "deleting", lost: "error", recovered: "running" },
  moving: { arrive: "moving", stay: "running", delete: "deleting", recovered: "moving" },
  error: { delete: "deleting", recovered: "running", lost: "error" },
  deleting: { delete: "deleting", lost: "deleting" },
});
