/**
 * The states of a snapshot. It is `ready` once and for all; one that is not is never restored. `deleting`
 * marks one whose worker was away when it was deleted.
 */
export const snapshotStates = ["creating", "ready", "error", "deleting"] as const;
export type SnapshotState = (typeof snapshotStates)[number];
