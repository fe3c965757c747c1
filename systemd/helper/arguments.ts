/** Whom and what a helper that runs as a process of its own serves, on its command line. */
import type { Volume } from "../volume/volume.ts";
import type { Served } from "./verbs.ts";

export function argumentsOf({ volume, memoryDir, worker: { pid, account } }: Served): string[] {
  return [account.name, ...[account.uid, account.gid, pid].map(String), memoryDir, ...volumeArguments(volume)];
}

export function servedOf([name = "", uid, gid, pid, memoryDir = "", ...volume]: readonly string[]): Served {
  return { volume: volumeOf(volume), memoryDir, worker: { pid: Number(pid), account: { name, uid: Number(uid), gid: Number(gid) } } };
}

const volumeArguments = ({ dir, image }: Volume): string[] => (image ? [dir, image.file, String(image.bytesMax), String(image.floorBytes)] : [dir]);

function volumeOf([dir = "", file, bytesMax, floorBytes]: readonly string[]): Volume {
  return file === undefined ? { dir } : { dir, image: { file, bytesMax: Number(bytesMax), floorBytes: Number(floorBytes) } };
}
