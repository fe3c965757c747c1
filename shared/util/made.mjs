/**
 * Shared by the builds: checking whether an output matches the current sources, and replacing files atomically.
 * Plain JavaScript for Node 18 and later, because it runs before anything is installed.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A hash that changes with the files below `root` and their names. @param {string} root @param {readonly string[]} paths files and folders */
export function fingerprint(root, paths) {
  const hash = createHash("sha256");
  for (const name of paths.flatMap((path) => filesAt(root, path)).sort())
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(root, name)))
      .update("\0");
  return hash.digest("hex");
}

/** Whether the content of `file` is `text`. @param {string} file @param {string} text */
export function says(file, text) {
  try {
    return readFileSync(file, "utf8") === text;
  } catch {
    return false;
  }
}

/** Writes a file atomically: readers see the old or the new content. @param {string} path @param {string | Uint8Array} contents */
export function replace(path, contents, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  const temporary = `${path}.${randomBytes(4).toString("hex")}`;
  writeFileSync(temporary, contents, { mode });
  renameSync(temporary, path);
}

function filesAt(root, path) {
  if (statSync(join(root, path)).isFile()) return [path];
  const entries = readdirSync(join(root, path), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(root.length + 1));
}
