/** The mounts of a sandbox that are not its own: a copy gets those of its own container in their places. */
import { readFileSync } from "node:fs";
import { type Mount, parseMounts } from "../../../shared/util/mounts.ts";
import { Refusal } from "../refusal.ts";

/** What may be in the path of a mount; CRIU's options are text with colons and brackets. */
const plainPath = /^(\/[\w.-]+)+$/;

/** Types of mounts that the OCI runtime has made for this sandbox, with nothing in them that is not its own. */
const ownTypes = ["proc", "sysfs", "mqueue", "tmpfs"];

/** Paths of mounts that a copy gets from its own container, by what a process sees. @throws {Refusal} for one with an unusual name */
export function foreignMounts(pid: number): string[] {
  const paths = parseMounts(readFileSync(`/proc/${pid}/mountinfo`, "utf8"))
    .filter(isForeign)
    .map(({ point }) => point);
  const odd = paths.find((path) => !plainPath.test(path));
  if (odd !== undefined) throw new Refusal("refused", `a mount has an unusual name: ${JSON.stringify(odd)}`);
  return [...new Set(paths)];
}

/**
 * The root is given by itself. Parts of proc that are mounted again, read-only, come from the copy's own. An empty folder that
 * covers another cannot be written to, so there is nothing in it to be kept.
 */
function isForeign({ point, root, type, options }: Mount): boolean {
  const isCover = type === "tmpfs" && options.includes("ro");
  return point !== "/" && (isCover || !(ownTypes.includes(type) && (root === "/" || type === "proc")));
}

/** The options that name them in a dump: by their numbers in the list. */
export const namedMounts = (paths: readonly string[]): string[] => paths.flatMap((path, index) => ["--external", `mnt[${path}]:m${index}`]);
