/** Decides which images to remove when there is no room for all. */
import { localRegistry } from "../../shared/util/image.ts";
import type { StoredImage } from "../runtime/podman/images.ts";

/** Whether an image came from a registry and has no local name since, so that it can be pulled again. */
export function isPulled({ names, digests, formerNames }: Pick<StoredImage, "names" | "digests" | "formerNames">): boolean {
  const all = [...names, ...digests, ...formerNames];
  return all.length > 0 && !all.some((name) => name.startsWith(`${localRegistry}/`));
}

/**
 * The images to remove so that the rest takes at most `bytesMax`, least recently used first. If that cannot be reached, all
 * that may go.
 */
export function surplus<T extends Pick<StoredImage, "sizeBytes">>(
  images: readonly T[],
  bytesMax: number,
  { mayGo, usedAtMs }: { mayGo: (image: T) => boolean; usedAtMs: (image: T) => number },
): T[] {
  let bytes = images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const going: T[] = [];
  for (const image of images.filter(mayGo).sort((one, other) => usedAtMs(one) - usedAtMs(other))) {
    if (bytes <= bytesMax) break;
    going.push(image);
    bytes -= image.sizeBytes;
  }
  return going;
}
