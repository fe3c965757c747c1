/** Images that Podman does not know to be in use, though files of sandboxes lie over them or will do so again. */
import type { Sandboxes } from "../sandboxes/registry.ts";
import type { Snapshots } from "../snapshots/registry.ts";

/**
 * @param parts.mounted the images below the files of restored sandboxes, by the id of the sandbox
 * @param parts.inArchive whether the archive also has the images of archived snapshots
 */
export function imagesNeeded(parts: { sandboxes: Sandboxes; snapshots: Snapshots; mounted: ReadonlyMap<string, string>; inArchive: boolean }): Set<string> {
  const ofSandboxes = [...parts.sandboxes.all()].map(({ record }) => record.root?.base.id);
  const ofSnapshots = [...parts.snapshots.all()].map(({ archived, manifest }) => (archived === "done" && parts.inArchive ? undefined : manifest.base.id));
  const all = [...ofSandboxes, ...ofSnapshots, ...parts.mounted.values()];
  return new Set(all.filter((id): id is string => Boolean(id)));
}
