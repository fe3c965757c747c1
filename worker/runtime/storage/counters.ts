/** Where the kernel shows what each subvolume of a file system takes. */
import { fileSystemId } from "./btrfs.ts";

/** The folder with one folder for each subvolume; it is missing while the file system counts nothing. @throws {Error} unless it is a btrfs. */
export const countersOf = (dir: string): string => `/sys/fs/btrfs/${fileSystemId(dir)}/qgroups`;
