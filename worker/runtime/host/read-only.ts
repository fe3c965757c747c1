/**
 * crun protects itself from what it starts by running from a copy of its program, which it makes anew each time, a quarter of what a start
 * in it takes. Where nobody can write to the program it needs none.
 */
import { existsSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { mountAt } from "../../../shared/util/mounts.ts";
import { makeReadOnly, mountAgain } from "../filesystem/mounting.ts";

const places = ["/usr/local/bin/crun", "/usr/bin/crun"];

/**
 * Mounts the program over itself, read-only, in Podman's mount namespace alone. An upgrade that replaces the file takes the mount away. Where
 * that cannot be done, crun makes its copies.
 */
export function mountRuntimeReadOnly(): void {
  for (const path of places) {
    if (!existsSync(path) || mountAt(path)) continue;
    attempt(() => {
      mountAgain(path, path);
      makeReadOnly(path);
    });
  }
}
