/** The states of a snapshot, those of its copy in the archive, and the moves between them. */
import { movesBy } from "./moves.ts";

/**
 * Only `ready` snapshots can be restored. A `deleting` one is already gone for callers; its worker still has to remove its
 * files. `error` is reserved in the API: a snapshot that fails is removed at once.
 */
export const snapshotStates = ["creating", "ready", "error", "deleting"] as const;
export type SnapshotState = (typeof snapshotStates)[number];

export const snapshotEvents = ["taken", "delete"] as const;
export type SnapshotEvent = (typeof snapshotEvents)[number];

export const nextSnapshotState = movesBy<SnapshotState, SnapshotEvent>({
  creating: { taken: "ready" },
  ready: { delete: "deleting" },
  error: { delete: "deleting" },
  deleting: { delete: "deleting" },
});

/** `done`: all layers are in the object store, so any worker can restore the snapshot. `local`: a setting keeps it on its worker. */
export const archiveStates = ["local", "pending", "done"] as const;
export type ArchiveState = (typeof archiveStates)[number];

export const archiveEvents = ["stored"] as const;
export type ArchiveEvent = (typeof archiveEvents)[number];

export const nextArchiveState = movesBy<ArchiveState, ArchiveEvent>({
  local: {},
  pending: { stored: "done" },
  done: { stored: "done" },
});
