/** The root of a container that has no files yet. */
import { chownSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { isInMemory } from "../../../shared/util/mounts.ts";
import { mountInMemory } from "./mounting.ts";

/** Room for the places of what the OCI runtime mounts. */
const options = "mode=755,size=64k,nr_inodes=64";

/** What Podman looks for in any root, and would bring along otherwise. */
const files = { passwd: "root:x:0:0:root:/root:/bin/sh\n", group: "root:x:0:\n" };

/** Mounts a root with next to nothing in it at a folder. @param owner the id of its root @throws {Error} */
export function mountEmpty(dir: string, owner: number): void {
  mountInMemory(dir, `${options},uid=${owner},gid=${owner}`);
  const etc = join(dir, "etc");
  mkdirSync(etc, { mode: 0o755 });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(etc, name), text, { mode: 0o644 });
  for (const path of [etc, ...Object.keys(files).map((name) => join(etc, name))]) chownSync(path, owner, owner);
}

/** Whether such a root is mounted at a folder. */
export const isEmptyRoot = (dir: string): boolean => attempt(() => statSync(dir).dev !== statSync(dirname(dir)).dev && isInMemory(dir)) ?? false;
