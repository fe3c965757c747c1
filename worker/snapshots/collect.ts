/** Removing archives that nobody needs any more. */
import type { LayerArchive } from "./archive.ts";

/**
 * Removes those of the layers that no snapshot refers to. Another worker may be making a snapshot with one of them just
 * now: it writes its entry first and looks for the layer in the archive then. Here the layer is hidden first and
 * asked about then, so that one of both always notices the other.
 *
 * @param isReferenced must see every entry that was written before it is called (ask the server, not a mirror).
 * @returns the layers removed.
 * @throws {SandgateError} `unavailable`; then it is to be called again.
 */
export async function removeUnreferenced(
  archive: LayerArchive,
  layerIds: readonly string[],
  isReferenced: (layerId: string) => Promise<boolean>,
): Promise<string[]> {
  const removed: string[] = [];
  for (const layerId of layerIds) {
    if (!(await isReferenced(layerId))) {
      await archive.hide(layerId);
      if (!(await isReferenced(layerId))) {
        await archive.remove(layerId);
        removed.push(layerId);
        continue;
      }
    }
    // Also what an earlier call hid and could not finish.
    await archive.show(layerId);
  }
  return removed;
}
