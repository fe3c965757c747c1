/** Root file systems that the worker assembles itself: snapshot layers over the layers of an image. */
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { run } from "../process/run.ts";
import { removeTree } from "./tree.ts";

const mountTimeoutMs = 30_000;

/** The folder of one root file system. Its parts have the same names as in Podman's own. */
export interface Root {
  readonly dir: string;
}

export const mergedOf = ({ dir }: Root): string => join(dir, "merged");

/**
 * Mounts a root, creating missing folders. A mounted root is left unchanged.
 *
 * @param lowers folders below the writable one, topmost first.
 */
export async function mountRoot(root: Root, lowers: readonly string[]): Promise<void> {
  if (await isMounted(root)) return;
  // The kernel accepts one page of mount options; short links instead of paths leave room for hundreds of layers.
  const links = join(root.dir, "l");
  await removeTree(links);
  for (const dir of [join(root.dir, "work"), mergedOf(root), links]) await mkdir(dir, { recursive: true, mode: 0o755 });
  await Promise.all(lowers.map((lower, index) => symlink(lower, join(links, String(index)))));
  const options = `lowerdir=${lowers.map((_, index) => `l/${index}`).join(":")},upperdir=diff,workdir=work,userxattr`;
  const result = await run("sh", ["-c", mountScript, "sh", options], { timeoutMs: mountTimeoutMs, cwd: root.dir });
  if (result.exitCode !== 0) throw new SandgateError("internal_error", "the files of the sandbox could not be mounted", { cause: new Error(result.stderr) });
}

/**
 * One program for everything, because the worker blocks while it starts one. The sandbox sees the root folder with the topmost
 * layer's owner, mode, times to the nanosecond and extended attributes, except those by which an overlay marks its own
 * folders. The writable folder is created in one step, so that one left incomplete by a dying worker is never taken for the
 * real one.
 */
const mountScript = `set -e
if [ ! -d diff ]; then
  [ ! -e diff.partial ] || rm -rf diff.partial
  mkdir diff.partial
  tar --create --format=posix --no-recursion --numeric-owner --xattrs --xattrs-include='*' --xattrs-exclude='user.overlay.*' --directory=l/0 . |
    tar --extract --same-owner --same-permissions --numeric-owner --xattrs --xattrs-include='*' --directory=diff.partial
  mv -T diff.partial diff
fi
exec mount --types overlay overlay --options "$1" merged`;

/** Unmounts a root and removes its writable files. */
export async function removeRoot(root: Root): Promise<void> {
  if (await isMounted(root)) {
    // A process that is about to end may still be in it.
    const result = await run("umount", ["--lazy", mergedOf(root)], { timeoutMs: mountTimeoutMs });
    if (result.exitCode !== 0) throw new SandgateError("internal_error", "the files of a sandbox could not be unmounted", { cause: new Error(result.stderr) });
  }
  await removeTree(root.dir);
}

async function isMounted(root: Root): Promise<boolean> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8");
  return mounts.includes(` ${mergedOf(root).replaceAll(" ", "\\040")} `);
}
