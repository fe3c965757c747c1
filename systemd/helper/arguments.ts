/** The volume on the command line of a helper that runs as a process of its own. */
import type { Volume } from "../volume/volume.ts";

export function argumentsOf({ dir, image }: Volume): string[] {
  return image ? [dir, image.file, String(image.bytesMax), String(image.floorBytes)] : [dir];
}

export function volumeOf([dir = "", file, bytesMax, floorBytes]: readonly string[]): Volume {
  return file === undefined ? { dir } : { dir, image: { file, bytesMax: Number(bytesMax), floorBytes: Number(floorBytes) } };
}
