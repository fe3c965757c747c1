/**
 * Small files, of which a reader sees the old or the new text, never half of it. None is written or read where somebody
 * less trusted could have put another one.
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

/** Replaces a file. @throws {UntrustedPath} when somebody less trusted can write its folder. */
export async function replaceFile(path: string, text: string, { mode, uid, gid }: Ownership): Promise<void> {
  trustedPath(dirname(path));
  const partial = `${path}.${randomBytes(4).toString("hex")}.partial`;
  const file = await open(partial, "wx", mode);
  try {
    await file.writeFile(text);
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

/** The text of a file, or nothing when it does not exist. @throws {UntrustedPath} when somebody less trusted can write it. */
export async function readIfThere(path: string): Promise<string | undefined> {
  const real = trustedPath(path);
  try {
    // Opening a FIFO would wait for its other end.
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
