/** Whom and what a helper that runs as a process of its own serves, on its command line. */
import type { Volume } from "../volume/volume.ts";
import type { Served } from "./verbs.ts";

export function argumentsOf({ volume, images, worker: { pid, account } }: Served): string[] {
  return [account.name, ...[account.uid, account.gid, pid].map(String), images.dir, String(images.floorBytes), images.keyFile, ...volumeArguments(volume)];
}

export function servedOf([name = "", uid, gid, pid, dir = "", floorBytes, keyFile = "", ...volume]: readonly string[]): Served {
  const images = { dir, floorBytes: Number(floorBytes), keyFile };
  return { volume: volumeOf(volume), images, worker: { pid: Number(pid), account: { name, uid: Number(uid), gid: Number(gid) } } };
}

const volumeArguments = ({ dir, image }: Volume): string[] => (image ? [dir, image.file, String(image.bytesMax), String(image.floorBytes)] : [dir]);

function volumeOf([dir = "", file, bytesMax, floorBytes]: readonly string[]): Volume {
  return file === undefined ? { dir } : { dir, image: { file, bytesMax: Number(bytesMax), floorBytes: Number(floorBytes) } };
}
