/** Dying at a named point, so that tests can see what a crash there leaves behind. Armed by a setting, else nothing. */

export const faultPoints = [
  "snapshot.begun",
  "snapshot.frozen",
  "snapshot.copied",
  "snapshot.layer",
  "snapshot.recorded",
  "snapshot.published",
  "restore.mounted",
  "restore.started",
  "delete.marked",
  "delete.withdrawn",
] as const;
export type FaultPoint = (typeof faultPoints)[number];

let armed = "";

/** From now on the process dies when it comes to this point. */
export function armFault(point: string): void {
  armed = point;
}

/** A point at which a test may let the process die, as `kill -9` would. */
export function faultPoint(point: FaultPoint): void {
  if (point === armed) process.kill(process.pid, "SIGKILL");
}
