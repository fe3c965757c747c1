/** The folder of Podman's network namespaces. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { mountAt } from "../../../shared/util/mounts.ts";
import { mountAgain } from "../filesystem/mounting.ts";

/**
 * Mounts the folder over itself while nothing is in it. Podman does that before it makes a namespace there, but not before it puts
 * one there that a container with ids of its own has made: which then was below the mount, where no removal found it.
 */
export function mountNetworksFolder(podmanRunDir: string): void {
  const dir = join(podmanRunDir, "netns");
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  if (!mountAt(dir) && readdirSync(dir).length === 0) mountAgain(dir, dir);
}
