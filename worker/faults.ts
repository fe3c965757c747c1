/** Dying at a named point, so that tests can see what a crash there leaves behind. Armed by a setting, else nothing. */

import { existsSync, readFileSync } from "node:fs";

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

let file = "";

/** From now on the process dies when it comes to the point that this file names then. */
export function armFaults(path: string): void {
  file = path;
}

/** A point at which a test may let the process die, as `kill -9` would. */
export function faultPoint(point: FaultPoint): void {
  if (file && existsSync(file) && readFileSync(file, "utf8") === point) process.kill(process.pid, "SIGKILL");
}
