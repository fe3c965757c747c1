/** Where the kernel shows what each subvolume of a file system takes. */
import { closeSync, constants, openSync } from "node:fs";
import { fileSystemId } from "../../../shared/util/libc.ts";

/** The folder with one folder for each subvolume; it is missing while the file system counts nothing. @throws {Error} unless it is a btrfs. */
export function countersOf(dir: string): string {
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return `/sys/fs/btrfs/${fileSystemId(fd)}/qgroups`;
  } finally {
    closeSync(fd);
  }
}
