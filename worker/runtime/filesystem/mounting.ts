/** Mounts and unmounts in this process, without a program. The constants are those of Linux on all machines. */
import { closeSync, constants, openSync } from "node:fs";
import { check, errorOf, library } from "../../../shared/util/libc.ts";

const mount = library.func("int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)");
const umount2 = library.func("int umount2(const char *target, int flags)");
const mountSetattr = library.func("int mount_setattr(int dir, const char *path, unsigned int flags, const uint64_t *attributes, size_t size)");
const fchdir = library.func("int fchdir(int fd)");
const bind = 0x1000;
const detach = 2;
/** Of mount_setattr(2): what is set, what is cleared, the propagation and a user namespace. */
const readOnly = new BigUint64Array([1n, 0n, 0n, 0n]);
/** What the kernel says of a folder at which nothing is mounted, or that is not there. */
const notMounted: readonly (string | undefined)[] = ["EINVAL", "ENOENT"];

/** Mounts a folder at another one as well. @throws {Error} */
export function mountAgain(dir: string, at: string): void {
  check(mount(dir, at, null, bind, null), "mount");
}

/** Makes what is mounted there read-only, and leaves its other options as they are. @throws {Error} */
export function makeReadOnly(at: string): void {
  check(mountSetattr(0, at, 0, readOnly, readOnly.byteLength), "mount_setattr");
}

/** Mounts an empty file system in memory at a folder. @throws {Error} */
export function mountInMemory(at: string, options: string): void {
  check(mount("tmpfs", at, "tmpfs", 0, options), "mount");
}

/**
 * Mounts a file system whose options have paths that are relative to a folder. Nothing else of this process runs meanwhile that
 * would notice its working directory: all other paths in it are absolute.
 *
 * @throws {Error}
 */
export function mountIn(dir: string, type: string, at: string, options: string): void {
  const [there, here] = [dir, "."].map((path) => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)) as [number, number];
  try {
    check(fchdir(there), "fchdir");
    try {
      check(mount(type, at, type, 0, options), "mount");
    } finally {
      check(fchdir(here), "fchdir");
    }
  } finally {
    for (const fd of [there, here]) closeSync(fd);
  }
}

/**
 * Unmounts what was last mounted at a folder; what uses it keeps it. On another thread: the kernel waits for all CPUs, and with the last
 * mount of a file system writes what is not on the disk yet.
 *
 * @returns whether there was anything
 * @throws {Error}
 */
export function detachMount(dir: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    umount2.async(dir, detach, (error: unknown, result: number) => {
      try {
        if (error) throw error;
        resolve(isDetached(result));
      } catch (failure) {
        reject(failure);
      }
    });
  });
}

function isDetached(result: number): boolean {
  if (result >= 0) return true;
  const error = errorOf("umount2");
  if (notMounted.includes(error.code)) return false;
  throw error;
}
