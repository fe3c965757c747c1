/** Lets tests kill or stop the process at a named point, to see what a crash or a standstill there leaves behind. Off unless configured. */

import { existsSync, readFileSync } from "node:fs";
import type { Verb } from "./privileged.ts";

/** Points that calls to any worker reach. */
export const pointsOfCalls = [
  "execute.sent",
  "execute.started",
  "execute.ended",
  "upload.received",
  "upload.placed",
  "snapshot.begun",
  "snapshot.frozen",
  "snapshot.copied",
  "snapshot.layer",
  "snapshot.recorded",
  "snapshot.published",
  "create.noted",
  "create.mounted",
  "create.started",
  "remove.marked",
  "remove.container",
  "remove.files",
  "delete.marked",
  "delete.withdrawn",
] as const;

export const faultPoints = [
  ...pointsOfCalls,
  // With images of memory.
  "snapshot.dumped",
  "memory.fetched",
  "restore.held",
  "restore.copied",
  // Between two workers.
  "move.left",
  "move.taken",
  "move.held",
  "move.received",
  "move.confirming",
  "move.confirmed",
  "move.ended",
] as const;
/** Points of the worker. */
export type FaultPoint = (typeof faultPoints)[number];
/** Points of the privileged helper: when it has read a request, when it has done it and not replied yet, and in between. */
export type HelperPoint = `${Verb}.${"begun" | "done"}` | "volume.grow.file" | "volume.grow.device";

let file = "";

/**
 * From now on, the process dies at whichever point this file names when it gets there. After the point may come, behind a space,
 * another signal than SIGKILL.
 */
export function armFaults(path: string): void {
  file = path;
}

/** A point at which a test may kill the process, as `kill -9` would, or stop it. */
export function faultPoint(point: FaultPoint | HelperPoint): void {
  if (!file || !existsSync(file)) return;
  const [named, signal = "SIGKILL"] = readFileSync(file, "utf8").split(" ");
  if (named === point) process.kill(process.pid, signal);
}
