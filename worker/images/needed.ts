/** Images that Podman does not know to be in use, though files of sandboxes lie over them or will do so again. */
import type { Sandboxes } from "../sandboxes/registry.ts";
import type { Roots } from "../sandboxes/roots.ts";
import type { Snapshots } from "../snapshots/registry.ts";

/** @param inArchive whether the archive has the images of archived snapshots, too */
export function imagesNeeded(parts: { sandboxes: Sandboxes; snapshots: Snapshots; roots: Pick<Roots, "bases">; inArchive: boolean }): Set<string> {
  const ofSandboxes = [...parts.sandboxes.all()].map(({ record }) => record.root?.base.id);
  const ofSnapshots = [...parts.snapshots.all()].map(({ archived, manifest }) => (archived === "done" && parts.inArchive ? undefined : manifest.base.id));
  const all = [...ofSandboxes, ...ofSnapshots, ...parts.roots.bases()];
  return new Set(all.filter((id): id is string => Boolean(id)));
}
