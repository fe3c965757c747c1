/** The root file systems of sandboxes, which the worker assembles itself: a writable folder over snapshot layers and an image. */
import { accessSync, constants, existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm, rmdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { retry } from "../../../shared/waiting.ts";
import { copiesBeside } from "../ids/ranges.ts";
import { copyFolder } from "./folder.ts";
import { detachMount, mountAgain, mountIn } from "./mounting.ts";

const mountTriesMax = 20;
const mountPauseMs = 50;
/** What the attributes by which an overlay marks its folders begin with. */
const overlayPrefix = "user.overlay.";

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
  /** Whether there is nothing in the root's folder yet. */
  readonly isNew?: boolean;
  /** What a folder is called where it is seen with the ids of the container, if those are not its own. */
  readonly place?: (dir: string) => string;
}

/**
 * Mounts a root, which is not mounted.
 *
 * @throws {SandgateError} `insufficient_storage`, `internal_error`, also when a root that should exist is not there.
 */
export async function mountRoot(root: Root, { lowers, scratch, isNew = false, place = asItIs }: MountOptions): Promise<void> {
  const [upper, work, merged] = [writableOf(root), join(root.dir, "work"), mergedOf(root)];
  const [top = ""] = lowers;
  if (!isNew && !existsSync(upper)) throw unmountable(new Error("they are not there any more"));
  try {
    if (!existsSync(upper)) await makeWritable(top, upper);
    await rm(work, { recursive: true, force: true });
    for (const dir of [work, merged]) await makeFolder(dir);
    await inLinks(scratch, [place(root.dir), ...lowers.map(place)], (links) => mountOverlay(links, lowers.length, root));
    if (root.stage !== undefined) {
      await mkdir(root.stage, { recursive: true });
      mountAgain(merged, root.stage);
    }
  } catch (error) {
    throw unmountable(error);
  }
}

/**
 * The sandbox sees the root folder with the topmost layer's owner, mode, times and extended attributes, except those by which an
 * overlay marks its own folders. It is made in one step, so that one left incomplete by a dying worker is never taken for the real one.
 */
async function makeWritable(top: string, dir: string): Promise<void> {
  const partial = `${dir}.partial`;
  await rm(partial, { recursive: true, force: true });
  copyFolder(top, partial, (attribute) => !attribute.startsWith(overlayPrefix));
  await rename(partial, dir);
}

async function makeFolder(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await chmod(dir, 0o755);
}

/** The kernel accepts one page of mount options; short links instead of paths leave room for hundreds of layers. */
async function inLinks(scratch: string, folders: readonly string[], use: (links: string) => Promise<void>): Promise<void> {
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  const links = await mkdtemp(join(scratch, "links-"));
  try {
    for (const [index, folder] of folders.entries()) await symlink(folder, join(links, String(index)));
    await use(links);
  } finally {
    await rm(links, { recursive: true, force: true });
  }
}

/**
 * Podman mounts its storage over itself, and some of its commands unmount that again. An overlay that is being mounted on an
 * image in there then fails (EINVAL), and succeeds when tried again. Without room for its own files, the kernel mounts an overlay
 * all the same, but read-only.
 */
async function mountOverlay(links: string, layers: number, root: Root): Promise<void> {
  const dir = mergedOf(root);
  const lowers = Array.from({ length: layers }, (_, index) => index + 1).join(":");
  const mount = (): void => mountIn(links, "overlay", dir, `lowerdir=${lowers},upperdir=0/diff,workdir=0/work,userxattr`);
  await retry(
    async () => mount(),
    (_, tries) => (tries < mountTriesMax ? mountPauseMs : undefined),
  );
  if (attempt(() => accessSync(dir, constants.W_OK) ?? true)) return;
  await unmountRoot(root);
  throw Object.assign(new Error("no space left on device for the overlay's own files"), { code: "ENOSPC" });
}

function unmountable(cause: unknown): SandgateError {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT") return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return new SandgateError("internal_error", "the files of the sandbox could not be mounted", { cause });
}

/** Unmounts a root, if it is mounted. */
export async function unmountRoot(root: Root): Promise<void> {
  for (const dir of placesOf(root)) while (await unmounted(() => detachMount(dir)));
  if (root.stage === undefined) return;
  for (const dir of [root.stage, copiesBeside(root.stage), dirname(root.stage)]) await rmdir(dir).catch(() => {}); // There is none.
}

async function unmounted(detach: () => Promise<boolean>): Promise<boolean> {
  try {
    return await detach();
  } catch (cause) {
    throw new SandgateError("internal_error", "the files of a sandbox could not be unmounted", { cause });
  }
}

const placesOf = (root: Root): string[] => [mergedOf(root), ...(root.stage === undefined ? [] : [root.stage, copiesBeside(root.stage)])];

const asItIs = (dir: string): string => dir;
