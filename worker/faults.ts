/** Lets tests kill the process at a named point, to see what a crash there leaves behind. Off unless configured. */

import { existsSync, readFileSync } from "node:fs";

export const faultPoints = [
  "snapshot.begun",
  "snapshot.frozen",
  "snapshot.copied",
  "snapshot.layer",
  "snapshot.recorded",
  "snapshot.published",
  "create.mounted",
  "create.started",
  "remove.container",
  "delete.marked",
  "delete.withdrawn",
] as const;
export type FaultPoint = (typeof faultPoints)[number];

let file = "";

/** From now on, the process dies at whichever point this file names when it gets there. */
export function armFaults(path: string): void {
  file = path;
}

/** A point at which a test may kill the process, as `kill -9` would. */
export function faultPoint(point: FaultPoint): void {
  if (file && existsSync(file) && readFileSync(file, "utf8") === point) process.kill(process.pid, "SIGKILL");
}
