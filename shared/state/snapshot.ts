/** The states of a snapshot, those of its copy in the archive, and the moves between them. */
import type { Moves } from "./moves.ts";

/**
 * Only a `ready` one can be restored. One that is `deleting` is gone for everybody; its worker still has to remove its files.
 * The API reserves `error`: a snapshot that fails is removed at once.
 */
export const snapshotStates = ["creating", "ready", "error", "deleting"] as const;
export type SnapshotState = (typeof snapshotStates)[number];

export const snapshotEvents = ["taken", "delete"] as const;
export type SnapshotEvent = (typeof snapshotEvents)[number];

const moves: Moves<SnapshotState, SnapshotEvent> = {
  creating: { taken: "ready" },
  ready: { delete: "deleting" },
  error: { delete: "deleting" },
  deleting: { delete: "deleting" },
};

/** The state after the event, or undefined when the event is not allowed in this state. */
export const nextSnapshotState = (state: SnapshotState, event: SnapshotEvent): SnapshotState | undefined => moves[state][event];

/** `done` when all layers are in the object store, from where any worker can restore them; `local`: a setting keeps them on the worker. */
export const archiveStates = ["local", "pending", "done"] as const;
export type ArchiveState = (typeof archiveStates)[number];

export const archiveEvents = ["stored"] as const;
export type ArchiveEvent = (typeof archiveEvents)[number];

const archiveMoves: Moves<ArchiveState, ArchiveEvent> = {
  local: {},
  pending: { stored: "done" },
  done: { stored: "done" },
};

/** The state after the event, or undefined when the event is not allowed in this state. */
export const nextArchiveState = (state: ArchiveState, event: ArchiveEvent): ArchiveState | undefined => archiveMoves[state][event];
