/** Images in use that Podman does not know about, because the files of sandboxes lie, or will lie, over them. */
import type { Sandboxes } from "../sandboxes/registry.ts";
import type { Snapshots } from "../snapshots/registry.ts";

/**
 * @param parts.mounted the images below the files of restored sandboxes, by sandbox id
 * @param parts.inArchive whether the archive also holds the images of archived snapshots
 */
export function imagesNeeded(parts: { sandboxes: Sandboxes; snapshots: Snapshots; mounted: ReadonlyMap<string, string>; inArchive: boolean }): Set<string> {
  const ofSandboxes = [...parts.sandboxes.all()].map(({ record }) => record.root?.base.id);
  const ofSnapshots = [...parts.snapshots.all()].map(({ archived, manifest }) => (archived === "done" && parts.inArchive ? undefined : manifest.base.id));
  const all = [...ofSandboxes, ...ofSnapshots, ...parts.mounted.values()];
  return new Set(all.filter((id): id is string => Boolean(id)));
}
