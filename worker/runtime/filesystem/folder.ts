/** Makes a folder like another one, without what is in that. */
import { chmodSync, chownSync, closeSync, constants, mkdirSync, openSync, statSync } from "node:fs";
import { check, library } from "../../../shared/util/libc.ts";

const flistxattr = library.func("long flistxattr(int fd, _Out_ uint8_t *list, unsigned long size)");
const fgetxattr = library.func("long fgetxattr(int fd, const char *name, _Out_ uint8_t *value, unsigned long size)");
const fsetxattr = library.func("int fsetxattr(int fd, const char *name, const uint8_t *value, unsigned long size, int flags)");
const futimens = library.func("int futimens(int fd, const int64_t *times)");
/** The most that the kernel has of names, and of one value. */
const attributeBytesMax = 65_536;
const nsPerS = 1_000_000_000n;
const permissions = 0o7777;

/**
 * The new folder has the other's owner, mode, times to the nanosecond and extended attributes; not those that cannot be set here, which
 * are root's.
 *
 * @param dir must not exist @param isWanted whether an attribute is taken over @throws {Error}
 */
export function copyFolder(from: string, dir: string, isWanted: (attribute: string) => boolean): void {
  mkdirSync(dir);
  const { uid, gid, mode, atimeNs, mtimeNs } = statSync(from, { bigint: true });
  chownSync(dir, Number(uid), Number(gid));
  const [source, target] = [from, dir].map((path) => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)) as [number, number];
  try {
    for (const name of attributesOf(source).filter(isWanted)) {
      const value = Buffer.alloc(attributeBytesMax);
      const bytes = Number(fgetxattr(source, name, value, value.length));
      if (bytes >= 0) fsetxattr(target, name, value, bytes, 0);
    }
    chmodSync(dir, Number(mode) & permissions);
    const times = [atimeNs, mtimeNs].flatMap((ns) => [ns / nsPerS, ns % nsPerS]);
    check(futimens(target, new BigInt64Array(times)), "futimens");
  } finally {
    for (const fd of [source, target]) closeSync(fd);
  }
}

function attributesOf(fd: number): string[] {
  const names = Buffer.alloc(attributeBytesMax);
  const bytes = Number(flistxattr(fd, names, names.length));
  return names.toString("utf8", 0, Math.max(0, bytes)).split("\0").filter(Boolean);
}
