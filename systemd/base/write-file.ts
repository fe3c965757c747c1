/**
 * Small files that are replaced atomically: a reader sees the old or the new content. They are never written or read at a path
 * where a less trusted user could have placed another file.
 */
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { StartFailure } from "./failure.ts";
import { trustedPath } from "./trusted-path.mjs";

export interface Ownership {
  readonly mode: number;
  readonly uid?: number;
  readonly gid?: number;
}

/** Replaces a file. @throws {UntrustedPath} if a less trusted user can write to its folder. */
export async function replaceFile(path: string, content: string | Uint8Array, { mode, uid, gid }: Ownership): Promise<void> {
  trustedPath(dirname(path));
  const partial = `${path}.${randomBytes(4).toString("hex")}.partial`;
  const file = await open(partial, "wx", mode);
  try {
    await file.writeFile(content);
    await file.chmod(mode);
    if (uid !== undefined && gid !== undefined) await file.chown(uid, gid);
    await file.sync();
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** The text of a file, or undefined if it does not exist. @throws {UntrustedPath} if a less trusted user can write to it. */
export async function readIfThere(path: string): Promise<string | undefined> {
  const real = trustedPath(path);
  try {
    // Opening a FIFO would block until its other end is opened.
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) throw new StartFailure(`${real} is not a file`);
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
