/** Removing archives that nobody needs any more. */
import type { LayerArchive } from "./archive.ts";

/**
 * Removes those of the layers that no snapshot refers to. Another worker may be making a snapshot with one of them just
 * now: it writes its entry first and looks for the layer in the archive then. Here the layer is hidden first and
 * asked about then, so that one of both always notices the other.
 *
 * @param inUse must see every entry that was written before it is called (ask the server, not a mirror).
 * @returns the layers removed.
 * @throws {SandgateError} `unavailable`; then it is to be called again.
 */
export async function removeUnreferenced(archive: LayerArchive, layerIds: readonly string[], inUse: () => Promise<ReadonlySet<string>>): Promise<string[]> {
  const before = await inUse();
  const hidden = layerIds.filter((id) => !before.has(id));
  for (const id of hidden) await archive.hide(id);
  const after = hidden.length > 0 ? await inUse() : before;
  const removed = hidden.filter((id) => !after.has(id));
  for (const id of removed) await archive.remove(id);
  // Also what an earlier call hid and could not finish.
  for (const id of layerIds) if (!removed.includes(id)) await archive.show(id);
  return removed;
}
