/** The file with the volume's file system: made completely or not at all, and mounted over a loop device that ends with the mount. */
import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { mountAt } from "../../shared/util/mounts.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import { CommandError } from "../base/run.ts";
import { firstSize } from "../volume/growth.ts";
import type { NoVolume, VolumeImage } from "../volume/volume.ts";
import type { Administrator } from "./administrator.ts";

/**
 * The worker's user may delete its subvolumes. No file of it is a device or gains its owner's rights on the host; sandboxes
 * have mounts of their own. What is deleted goes back to the disk, and no longer counts after these seconds.
 */
const mountOptions = "user_subvol_rm_allowed,noatime,nosuid,nodev,discard=async,commit=5";

type AsRoot = (...argv: string[]) => Promise<string>;

/**
 * Mounts the file at `dir`, and makes it first if there is none.
 *
 * @returns why there can be none here
 * @throws {StartFailure} if there is one and it cannot be mounted
 */
export async function mountImage(image: VolumeImage, dir: string, administrator: Administrator): Promise<NoVolume | undefined> {
  const asRoot: AsRoot = (...argv) => administrator.run("mount the volume for sandboxes", argv, { always: true });
  const partial = `${image.file}.partial`;
  if (!mountAt(dir) && !existsSync(image.file)) {
    const bytes = await roomFor(image);
    if (bytes === undefined) return { reason: `the disk of ${dirname(image.file)} has too little room for one` };
    const failure = await failureOf(async () => {
      await makeFileSystem(partial, bytes, asRoot);
      await mount(partial, dir, asRoot);
    });
    if (failure) {
      await asRoot("rm", "-f", partial);
      return { reason: `cannot be made here: ${failure}` };
    }
  }
  // What could be mounted is complete, also if an earlier start was killed here.
  if (mountAt(dir) && !existsSync(image.file)) await asRoot("mv", "--no-target-directory", partial, image.file);
  if (mountAt(dir)) return undefined;
  const failure = await failureOf(() => mount(image.file, dir, asRoot));
  if (!failure) return undefined;
  throw new StartFailure(
    `The volume with the sandboxes cannot be mounted: ${failure}\nCheck it with \`btrfs check ${image.file}\`, or set SANDGATE_VOLUME=none to start without its sandboxes.`,
  );
}

async function roomFor({ file, bytesMax, floorBytes }: VolumeImage): Promise<number | undefined> {
  const { bavail, bsize } = await statfs(dirname(file));
  return firstSize(bytesMax, { freeBytes: bavail * bsize, floorBytes });
}

/** Makes it under another name, so that a file system that was never finished is not mistaken for one with sandboxes. */
async function makeFileSystem(file: string, bytes: number, asRoot: AsRoot): Promise<void> {
  await asRoot("rm", "-f", file);
  await asRoot("install", "-m", "0600", "/dev/null", file);
  // Where the disk itself copies on write, doing so once is enough. Other file systems do not know this attribute.
  await failureOf(() => asRoot("chattr", "+C", file));
  await asRoot("truncate", "--size", String(bytes), file);
  // Whether everything is stored twice is for the disk below to decide.
  await asRoot("mkfs.btrfs", "--quiet", "--metadata", "single", file);
  await asRoot("sync", file);
}

async function mount(file: string, dir: string, asRoot: AsRoot): Promise<void> {
  // Nobody can write to the folder while nothing is mounted on it.
  await asRoot("install", "-d", "-m", "0700", "-o", "root", "-g", "root", dir);
  const device = await usedDevice(file, asRoot);
  // Otherwise the mount gets one, with which it ends.
  const source = device ? [mountOptions, device] : [`loop,${mountOptions}`, file];
  await asRoot("mount", "-t", "btrfs", "-o", ...source, dir);
  // Otherwise, everything would be cached twice. Not every file system can do without.
  await failureOf(() => asRoot("losetup", "--direct-io=on", mountAt(dir)?.source ?? ""));
}

/** The loop device on which the file is mounted elsewhere, such as in a namespace that has outlived the last run. Others are given up. */
async function usedDevice(file: string, asRoot: AsRoot): Promise<string | undefined> {
  const devices = async (): Promise<string[]> =>
    (await asRoot("losetup", "--noheadings", "--output", "NAME", "--associated", file)).split("\n").filter(Boolean);
  // One that is in use ends when it no longer is.
  for (const device of await devices()) await failureOf(() => asRoot("losetup", "--detach", device));
  return (await devices())[0];
}

/** What a failed command has said. */
async function failureOf(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof CommandError) return messageOf(error);
    throw error;
  }
}
