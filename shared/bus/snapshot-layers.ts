/** Images as layers: where a worker lacks the image below a snapshot, its content from the archive takes its place. */
import type { BaseImage, Layer, Manifest } from "./entries.ts";

const prefix = "image_";
const idChars = 32;

/** The name of an image's content as a layer. */
const imageLayerId = (imageId: string): string => prefix + imageId.slice(0, idChars);

/** The image of such a layer, as far as its name tells, which is enough to find it; undefined for other layers. */
export const imageOfLayer = (layerId: string): string | undefined => (layerId.startsWith(prefix) ? layerId.slice(prefix.length) : undefined);

/** All layers without which files cannot be restored, the image's content included, topmost first. */
export function layersOf({ layers, base }: { readonly layers: readonly Layer[]; readonly base: BaseImage }): Layer[] {
  return [...layers, { id: baseLayerOf(base), size_bytes: 0 }];
}

/** What of them the object store has, or is to have, with the image of memory. */
export const storedLayersOf = (manifest: Manifest): Layer[] => [
  ...(manifest.memory_image ? [manifest.memory_image] : []),
  ...layersOf({ ...manifest, layers: manifest.stored ?? manifest.layers }),
];

const memoryPrefix = "memory_";

/** The name of an image of memory as a layer. */
export const memoryLayerId = (image: number): string => `${memoryPrefix}${image}`;

/** The number of the image of memory that such a layer is, on the worker that took it; undefined for other layers. */
export const memoryOfLayer = (layerId: string): number | undefined =>
  layerId.startsWith(memoryPrefix) ? Number(layerId.slice(memoryPrefix.length)) : undefined;

/** The layer with the content of an image. */
export const baseLayerOf = (base: BaseImage): string => base.layer ?? imageLayerId(base.id);

/**
 * The name here of a layer that was fetched from what another worker has stored. Names of different workers must not meet: who
 * controls one worker would otherwise choose the files of other workers' snapshots.
 */
export const fetchedLayerId = (layerId: string, workerId: string): string => `${layerId.split("@")[0]}@${workerId}`;

export const isFetchedLayer = (layerId: string): boolean => layerId.includes("@");
