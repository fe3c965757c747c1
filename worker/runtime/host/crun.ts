/** What makes crun start containers with less work, where its program allows it. */
import { existsSync, readFileSync } from "node:fs";
import { attempt } from "../../../shared/util/attempt.ts";
import { mountAt } from "../../../shared/util/mounts.ts";
import { filterAnnotation } from "../container/seccomp-filter.ts";
import { makeReadOnly, mountAgain } from "../filesystem/mounting.ts";

/** In the order of the search path. */
const places = ["/usr/local/bin/crun", "/usr/bin/crun"];

/**
 * crun protects its program from what it starts by running from a copy, which it makes anew each time: half of what a start takes in it.
 * It makes none where nobody can write to the program. So that is mounted over itself, read-only, in Podman's mount namespace alone. An
 * upgrade that replaces the file takes the mount away. Where it cannot be done, crun makes its copies.
 */
export function mountCrunReadOnly(): void {
  for (const path of places) {
    if (!existsSync(path) || mountAt(path)) continue;
    attempt(() => {
      mountAgain(path, path);
      makeReadOnly(path);
    });
  }
}

/** Whether it takes a filter of system calls that is ready: its program knows the annotation by name then. */
export function takesReadyFilters(): boolean {
  const path = places.find((place) => existsSync(place));
  return path !== undefined && readFileSync(path).includes(filterAnnotation);
}
