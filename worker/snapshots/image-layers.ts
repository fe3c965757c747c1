/** Images as layers: where a worker lacks the image below a snapshot, its content from the archive takes its place. */
import type { BaseImage, Layer } from "../../shared/schemas/messages.ts";

const prefix = "image_";
const idChars = 32;

/** The name of an image's content as a layer. */
export const imageLayerId = (imageId: string): string => prefix + imageId.slice(0, idChars);

/** The image of such a layer, as far as its name tells, which is enough to find it; undefined for other layers. */
export const imageOfLayer = (layerId: string): string | undefined => (layerId.startsWith(prefix) ? layerId.slice(prefix.length) : undefined);

/** All layers without which files cannot be restored, the image's content included, topmost first. */
export function layersOf({ layers, base }: { readonly layers: readonly Layer[]; readonly base: BaseImage }): Layer[] {
  return [...layers, { id: imageLayerId(base.id), size_bytes: 0 }];
}
