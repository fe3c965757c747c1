/** Operations on whole folders: copy with all contents, compare, remove, sync to disk. */
import { randomUUID } from "node:crypto";
import { lstatSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandgateError } from "../../../shared/errors.ts";
import { isOutOfDisk, run, runBulk } from "../process/run.ts";

const copyTimeoutMs = 3_600_000;
const toolTimeoutMs = 600_000;

/** A path in a folder is longer than the kernel accepts at once. */
export class PathTooLong extends SandgateError {
  constructor() {
    super("internal_error", "a path in the sandbox is too long");
  }
}

/**
 * Copies the contents of a folder: owners, modes, times, links, extended attributes, holes and device nodes. Blocks are shared
 * if the file system can.
 *
 * @returns false when files vanished during the copy.
 * @throws {PathTooLong}, {SandgateError} `insufficient_storage`, `internal_error`.
 */
export async function copyTree(from: string, to: string): Promise<boolean> {
  const options = ["--archive", "--reflink=auto", "--sparse=auto", "--one-file-system"];
  // It must not outlive a worker that dies, because the next one removes the unfinished copy.
  const result = await runBulk("setpriv", ["--pdeathsig", "KILL", "cp", ...options, `${from}/.`, to], { timeoutMs: copyTimeoutMs });
  if (result.exitCode === 0) return true;
  if (/file name too long/i.test(result.stderr)) throw new PathTooLong();
  if (onlyVanished(result.stderr)) return false;
  throw failure("copy the files of the sandbox", result.stderr);
}

const onlyVanished = (stderr: string): boolean =>
  stderr
    .trim()
    .split("\n")
    .every((line) => /no such file or directory|file has vanished|skipping file .* as it was replaced/i.test(line));

/** A text that changes whenever a file below the folder does, made of the inodes, sizes and change times of all files. */
export async function fingerprintOf(dir: string): Promise<string> {
  const result = await runBulk("find", [dir, "-xdev", "-printf", "%i %s %n %m %U %G %C@ %p\\0"], { timeoutMs: toolTimeoutMs });
  // find fails when files vanish meanwhile, and also when its list is too long to be held. A random text then matches nothing.
  return result.exitCode === 0 ? result.stdout : randomUUID();
}

/** Resolves when everything written to the folder's file system is on disk. */
export async function syncTree(dir: string): Promise<void> {
  const result = await run("sync", ["--file-system", dir], { timeoutMs: toolTimeoutMs });
  if (result.exitCode !== 0) throw failure("bring the files to disk", result.stderr);
}

/** Removes a folder with everything in it; does nothing if it does not exist. */
export async function removeTree(dir: string): Promise<void> {
  // Usually there is nothing, so do not start a program.
  if (!lstatSync(dir, { throwIfNoEntry: false })) return;
  const result = await runBulk("rm", ["--recursive", "--force", "--one-file-system", "--", dir], { timeoutMs: toolTimeoutMs });
  if (result.exitCode !== 0) throw failure("remove files", result.stderr);
}

/** Removes the files below a folder whose names have one of these prefixes, without following links. */
export async function removeByPrefix(dir: string, prefixes: readonly string[]): Promise<void> {
  if (prefixes.length === 0) return;
  const names = prefixes.flatMap((prefix, index) => [...(index > 0 ? ["-o"] : []), "-name", `${prefix}*`]);
  const result = await run("find", [dir, "-xdev", "-type", "f", "(", ...names, ")", "-delete"], { timeoutMs: toolTimeoutMs });
  if (result.exitCode !== 0) throw failure("leave out files of unfinished uploads", result.stderr);
}

/** The caller's error for something that a program could not do. */
export function failure(action: string, stderr: string): SandgateError {
  const cause = new Error(stderr.slice(-2_000));
  if (isOutOfDisk(stderr)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  return new SandgateError("internal_error", `the sandbox host could not ${action}`, { cause });
}

/** Removes everything in a folder. */
export async function emptyFolder(dir: string): Promise<void> {
  await Promise.all((await readdir(dir)).map((name) => removeTree(join(dir, name))));
}
