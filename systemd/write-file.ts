/** Writing small files so that a reader sees the old or the new text, never half of it. */
import { randomBytes } from "node:crypto";
import { chown, open, readFile, rename, rm } from "node:fs/promises";

export interface Ownership {
  readonly mode: number;
  readonly uid?: number;
  readonly gid?: number;
}

/** Replaces a file; its folder must not be writable by anybody less trusted than the caller. */
export async function replaceFile(path: string, text: string, { mode, uid, gid }: Ownership): Promise<void> {
  const partial = `${path}.${randomBytes(4).toString("hex")}.partial`;
  const file = await open(partial, "wx", mode);
  try {
    await file.writeFile(text);
    await file.chmod(mode);
    await file.sync();
    if (uid !== undefined && gid !== undefined) await chown(partial, uid, gid);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** The text of a file, or nothing when it does not exist. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
