/** Control groups of containers. */
import { readFileSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { Refusal } from "../refusal.ts";

/** The control group of a process, as a folder in which another may enter it. @throws {Refusal} where it has none to itself */
export function groupFolderOf(pid: number): string {
  const path = /^0::(\/.+)$/m.exec(attempt(() => readFileSync(`/proc/${pid}/cgroup`, "utf8")) ?? "")?.[1];
  if (path === undefined || path.split("/").includes("..")) throw new Refusal("refused", "the container has no control group of its own");
  return `/sys/fs/cgroup${path}`;
}
