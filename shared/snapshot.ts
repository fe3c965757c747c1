/** The states of a snapshot. It is `ready` once and for all; one that is not is never restored. */
export const snapshotStates = ["creating", "ready", "error"] as const;
export type SnapshotState = (typeof snapshotStates)[number];
