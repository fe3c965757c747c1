/** The root file systems of sandboxes, which the worker assembles itself: a writable folder over snapshot layers and an image. */
import { existsSync, mkdirSync } from "node:fs";
import { mkdir, rm, rmdir, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { detachMount, mountAgain } from "../../../shared/util/libc.ts";
import { mountAt } from "../../../shared/util/mounts.ts";
import { isOutOfDisk, run } from "../process/run.ts";

const mountTimeoutMs = 30_000;
const mountTriesMax = 20;

/** The folder of one root file system. Its parts have the same names as in Podman's own. */
export interface Root {
  readonly dir: string;
  /** The folder in which it is mounted once more, for a container with other ids than the worker's. */
  readonly stage?: string | undefined;
}

export const mergedOf = ({ dir }: Root): string => join(dir, "merged");
export const writableOf = ({ dir }: Root): string => join(dir, "diff");

export interface MountOptions {
  /** Folders below the writable one, topmost first. */
  readonly lowers: readonly string[];
  /** An in-memory folder for what is needed only while the root is mounted. */
  readonly scratch: string;
  /** The command that makes the root's folder; undefined for one that exists. */
  readonly make?: readonly string[] | undefined;
  /** What a folder is called where it is seen with the ids of the container, if those are not its own. */
  readonly place?: (dir: string) => string;
}

/**
 * Mounts a root, which is not mounted.
 *
 * @throws {SandgateError} `insufficient_storage`, `internal_error`, also when a root that should exist is not there.
 */
export async function mountRoot(root: Root, { lowers, scratch, make = [], place = asItIs }: MountOptions): Promise<void> {
  if (make.length === 0 && !existsSync(writableOf(root))) throw unmountable("they are not there any more");
  // The kernel accepts one page of mount options; short links instead of paths leave room for hundreds of layers.
  const links = join(scratch, basename(root.dir));
  await rm(links, { recursive: true, force: true });
  await mkdir(links, { recursive: true, mode: 0o700 });
  try {
    const [top = ""] = lowers;
    const named = { root: root.dir, top, upper: place(root.dir), ...Object.fromEntries(lowers.map((folder, index) => [index + 1, place(folder)])) };
    await Promise.all(Object.entries(named).map(([name, folder]) => symlink(folder, join(links, name))));
    const options = `lowerdir=${lowers.map((_, index) => index + 1).join(":")},upperdir=upper/diff,workdir=upper/work,userxattr`;
    const result = await run("sh", ["-c", mountScript, "sh", options, ...make], { timeoutMs: mountTimeoutMs, cwd: links });
    if (result.exitCode !== 0) throw unmountable(result.stderr);
    if (root.stage !== undefined) mountForContainer(root, root.stage);
  } finally {
    await rm(links, { recursive: true, force: true });
  }
}

/**
 * One program for everything, because the worker blocks while it starts one. The sandbox sees the root folder with the topmost
 * layer's owner, mode, times to the nanosecond and extended attributes, except those by which an overlay marks its own
 * folders. The writable folder is created in one step, so that one left incomplete by a dying worker is never taken for the
 * real one. Without room for its own files, the kernel mounts an overlay all the same, but read-only.
 *
 * Podman mounts its storage over itself, and some of its commands unmount that again. An overlay that is being mounted on an
 * image in there then fails (EINVAL), and succeeds when tried again.
 */
const mountScript = `set -e
options=$1
shift
[ $# -eq 0 ] || "$@" > /dev/null
if [ ! -d root/diff ]; then
  [ ! -e root/diff.partial ] || rm -rf root/diff.partial
  mkdir root/diff.partial
  tar --create --format=posix --no-recursion --numeric-owner --xattrs --xattrs-include='*' --xattrs-exclude='user.overlay.*' --directory=top . |
    tar --extract --same-owner --same-permissions --numeric-owner --xattrs --xattrs-include='*' --directory=root/diff.partial
  mv -T root/diff.partial root/diff
fi
[ ! -e root/work ] || rm -rf root/work
mkdir -p -m 755 root/work root/merged
tries=0
until mount --types overlay overlay --options "$options" root/merged; do
  tries=$((tries + 1))
  [ $tries -lt ${mountTriesMax} ] || exit 1
  sleep 0.05
done
[ -w root/merged ] && exit
umount root/merged
echo "no space left on device for the overlay's own files" >&2
exit 1`;

function unmountable(why: string): SandgateError {
  const cause = new Error(why);
  if (isOutOfDisk(why)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return new SandgateError("internal_error", "the files of the sandbox could not be mounted", { cause });
}

function mountForContainer(root: Root, stage: string): void {
  try {
    mkdirSync(stage, { recursive: true });
    mountAgain(mergedOf(root), stage);
  } catch (error) {
    throw unmountable(String(error));
  }
}

/** Unmounts a root, if it is mounted. */
export async function unmountRoot(root: Root): Promise<void> {
  for (const dir of placesOf(root)) if (mountAt(dir)) unmountNow(dir);
  if (root.stage === undefined) return;
  for (const dir of [root.stage, dirname(root.stage)]) await rmdir(dir).catch(() => {}); // There is none.
}

/** Unmounts what is mounted at a folder. A process that is about to end may still be in it. */
export function unmountNow(dir: string): void {
  try {
    detachMount(dir);
  } catch (cause) {
    throw new SandgateError("internal_error", "the files of a sandbox could not be unmounted", { cause });
  }
}

const placesOf = (root: Root): string[] => [mergedOf(root), ...(root.stage === undefined ? [] : [root.stage])];

const asItIs = (dir: string): string => dir;
