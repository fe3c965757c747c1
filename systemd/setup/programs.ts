/** Which programs this machine has. */
import { accessSync, constants, existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { searchPath } from "../base/search-path.mjs";

/** The path of a program, searched for in Debian's program folders; an absolute path is used as it is. */
export function findProgram(name: string): string | undefined {
  const candidates = isAbsolute(name) ? [name] : searchPath.split(":").map((folder) => join(folder, name));
  return candidates.find(isUsable);
}

/** Whether systemd is the first process, by systemd's own test (sd_booted(3)). */
export function hasSystemd(): boolean {
  return existsSync("/run/systemd/system");
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
