/** Control groups of tests. */
import { existsSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** Removes a group with all below it, in which nothing runs. */
export function removeGroups(dir: string): void {
  if (!existsSync(dir)) return;
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) removeGroups(join(dir, entry.name));
  rmdirSync(dir);
}
