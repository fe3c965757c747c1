/** What the kernel offers for subvolumes of a btrfs, called without a program. The constants are those of Linux on x86-64 and arm64. */
import { closeSync, constants, openSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { addressIn, check, library } from "../../../shared/util/libc.ts";

const ioctl = library.func("int ioctl(int fd, unsigned long request, void *argument)");
const fileSystemInfo = 0x8400941f;
const findSubvolume = 0xd0009412;
const createSubvolume = 0x50009418;
const snapshotSubvolume = 0x50009417;
const destroySubvolume = 0x5000940f;
const setFlags = 0x4008941a;
const readOnly = 2n;
const firstFile = 256n;

/** `struct btrfs_ioctl_vol_args`, and where its name is. */
const volumeBytes = 4096;
const nameAt = 8;
/** Where `struct btrfs_ioctl_vol_args_v2` has its flags, the size and the address of what is inherited, and the name. */
const second = { flags: 16, inheritedBytes: 24, inherited: 32, name: 56 } as const;
const withInherited = 4n;
/** Where `struct btrfs_qgroup_inherit` has its flags, those of the limits, and the limit of what is referred to. */
const inherit = { bytes: 72, flags: 0, limited: 32, referenced: 40 } as const;
const one = 1n;

/** The id of a btrfs file system, as its folder in /sys/fs/btrfs is called. @throws {Error} for any other file system. */
export function fileSystemId(dir: string): string {
  const info = Buffer.alloc(1024);
  inFolder(dir, (fd) => check(ioctl(fd, fileSystemInfo, info), "BTRFS_IOC_FS_INFO"));
  return info.toString("hex", 16, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The id of the btrfs subvolume that a folder is in. @throws {Error} */
export function subvolumeId(dir: string): number {
  const lookup = Buffer.alloc(4096);
  lookup.writeBigUInt64LE(firstFile, 8);
  inFolder(dir, (fd) => check(ioctl(fd, findSubvolume, lookup), "BTRFS_IOC_INO_LOOKUP"));
  return Number(lookup.readBigUInt64LE(0));
}

/** Makes a subvolume. @param bytesMax what it may refer to, where the file system counts that @throws {Error} */
export async function makeSubvolume(dir: string, bytesMax?: number): Promise<void> {
  await change("BTRFS_IOC_SUBVOL_CREATE_V2", createSubvolume, dirname(dir), arguments2(dir, bytesMax));
}

/** Whether nothing in a subvolume can be changed from now on, by nobody. @throws {Error} */
export async function setReadOnly(dir: string, isReadOnly: boolean): Promise<void> {
  const flags = Buffer.alloc(8);
  flags.writeBigUInt64LE(isReadOnly ? readOnly : 0n);
  await change("BTRFS_IOC_SUBVOL_SETFLAGS", setFlags, dir, flags);
}

/** Makes a subvolume with all that is in another one. It has the limit of that as well. @throws {Error} */
export async function copySubvolume(from: string, dir: string, { isReadOnly = false } = {}): Promise<void> {
  const source = await open(from, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const wanted = arguments2(dir, undefined);
    wanted.writeBigInt64LE(BigInt(source.fd), 0);
    if (isReadOnly) wanted.writeBigUInt64LE(readOnly, second.flags);
    await change("BTRFS_IOC_SNAP_CREATE_V2", snapshotSubvolume, dirname(dir), wanted);
  } finally {
    await source.close();
  }
}

/** Removes a subvolume in one step. Its space comes back later. @throws {Error} */
export async function removeSubvolume(dir: string): Promise<void> {
  const wanted = Buffer.alloc(volumeBytes);
  wanted.write(basename(dir), nameAt);
  const destroy = (): Promise<void> => change("BTRFS_IOC_SNAP_DESTROY", destroySubvolume, dirname(dir), wanted);
  await destroy().catch(async (error: NodeJS.ErrnoException) => {
    // Its owner may remove one that is read-only only after it is not.
    if (error.code !== "EROFS") throw error;
    await setReadOnly(dir, false);
    await destroy();
  });
}

/** What `arguments2` refers to by its address stays as long as that. */
const referred = new WeakMap<Buffer, Buffer>();

function arguments2(dir: string, bytesMax: number | undefined): Buffer {
  const wanted = Buffer.alloc(volumeBytes);
  wanted.write(basename(dir), second.name);
  if (bytesMax === undefined) return wanted;
  const limits = Buffer.alloc(inherit.bytes);
  limits.writeBigUInt64LE(one, inherit.flags);
  limits.writeBigUInt64LE(one, inherit.limited);
  limits.writeBigUInt64LE(BigInt(bytesMax), inherit.referenced);
  wanted.writeBigUInt64LE(withInherited, second.flags);
  wanted.writeBigUInt64LE(BigInt(inherit.bytes), second.inheritedBytes);
  wanted.writeBigUInt64LE(addressIn(limits), second.inherited);
  referred.set(wanted, limits);
  return wanted;
}

/** Of a folder, on another thread: it may have to wait for the disk. */
async function change(name: string, request: number, dir: string, wanted: Buffer): Promise<void> {
  const folder = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await new Promise<void>((resolve, reject) => {
      ioctl.async(folder.fd, request, wanted, (error: unknown, result: number) => {
        try {
          if (error) throw error;
          check(result, name);
          resolve();
        } catch (failure) {
          reject(failure);
        }
      });
    });
  } finally {
    await folder.close();
  }
}

function inFolder(dir: string, use: (fd: number) => void): void {
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    use(fd);
  } finally {
    closeSync(fd);
  }
}
