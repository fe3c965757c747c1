/**
 * Unpacks an archive made by a sandbox. Its content is untrusted and must not escape the folder: names that are absolute or
 * contain `..` are refused, links that lead out are skipped, and no path may go through a link.
 */
import { chmod, link, lstat, mkdir, open, rm, symlink, utimes } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { type Extract, extract, type Header } from "tar-stream";
import { CliError } from "../failures.ts";
import { say } from "../output.ts";
import type { Copied } from "./upload.ts";

/** @param folder a real path. @throws {CliError} for a malicious archive, or paths too long for this system */
export async function extractTo(folder: string, archive: AsyncIterable<Uint8Array>): Promise<Copied> {
  try {
    return await extractAll(folder, archive);
  } catch (error) {
    // The error's own message contains the whole path, which has thousands of characters.
    if (!(error instanceof Error && "code" in error && error.code === "ENAMETOOLONG")) throw error;
    throw new CliError("the folder has a path that is too long for this system, and was copied in part; `-` as the target gives all of it as an archive");
  }
}

async function extractAll(folder: string, archive: AsyncIterable<Uint8Array>): Promise<Copied> {
  const unpacked = { files: 0, bytes: 0, skipped: 0 };
  const folders: { path: string; header: Header }[] = [];
  for await (const entry of entriesOf(archive)) {
    const { header } = entry;
    const name = nameBelow(header.name);
    const path = name === undefined ? undefined : join(folder, name);
    const problem = path === undefined ? undefined : await problemOf(folder, path, header);
    if (path === undefined || problem) {
      if (problem) {
        say(`sandgate: ${name} is left out: ${problem}`);
        unpacked.skipped++;
      }
      entry.resume();
      continue;
    }
    await mkdir(dirname(path), { recursive: true });
    if (header.type === "directory") {
      await makeFolder(path);
      folders.push({ path, header });
    } else if (header.type === "symlink") await replace(path, () => symlink(header.linkname as string, path));
    else if (header.type === "link") await replace(path, () => link(join(folder, nameBelow(header.linkname as string) ?? ""), path));
    else {
      await rm(path, { force: true });
      await writeNew(path, entry as AsyncIterable<Uint8Array>);
      await settle(path, header);
    }
    entry.resume();
    unpacked.files++;
    unpacked.bytes += header.size ?? 0;
  }
  // Folders come last, because one may forbid writing, and each new entry changes its time.
  for (const { path, header } of folders.reverse()) await settle(path, header);
  return unpacked;
}

/** The name relative to the folder; undefined for the folder itself. @throws {CliError} if it would lead out */
export function nameBelow(name: string): string | undefined {
  if (isAbsolute(name) || name.includes("\0") || name.split("/").includes(".."))
    throw new CliError(`the archive is refused: it has an entry ${JSON.stringify(name)}`);
  return (
    name
      .split("/")
      .filter((part) => part !== "" && part !== ".")
      .join("/") || undefined
  );
}

async function problemOf(folder: string, path: string, { type, linkname = "" }: Header): Promise<string | undefined> {
  if (await goesThroughLink(folder, dirname(path))) return "its path goes through a link";
  if (type === "symlink") return leadsOut(folder, path, linkname) ? `it links to ${linkname}` : undefined;
  if (type !== "link") return type === "file" || type === "directory" || type === "contiguous-file" ? undefined : `it is a ${type}`;
  const target = nameBelow(linkname);
  return target === undefined || (await goesThroughLink(folder, join(folder, target))) ? `it links to ${linkname}` : undefined;
}

function leadsOut(folder: string, path: string, linkname: string): boolean {
  const target = relative(folder, resolve(dirname(path), linkname));
  return isAbsolute(linkname) || target === ".." || target.startsWith(`..${sep}`);
}

/** Whether any component of the path below the folder is a link. */
async function goesThroughLink(folder: string, path: string): Promise<boolean> {
  let at = folder;
  for (const part of relative(folder, path).split(sep).filter(Boolean)) {
    at = join(at, part);
    const info = await lstat(at).catch(() => undefined);
    if (info?.isSymbolicLink()) return true;
  }
  return false;
}

/** The header and bytes of one archive entry. */
type Entry = Extract extends AsyncIterable<infer E> ? E : never;

/** The entries of an archive in order. Read each to its end, or skip it with `resume`. @throws {Error} if the archive is incomplete */
export async function* entriesOf(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Entry> {
  const stream = extract();
  const feeding = feed(stream, archive);
  feeding.catch((error: Error) => stream.destroy(error));
  yield* stream;
  await feeding;
}

/** Writes an archive to its parser, with backpressure. */
async function feed(stream: Extract, archive: AsyncIterable<Uint8Array>): Promise<void> {
  let wake: (() => void) | undefined;
  const goOn = (): void => wake?.();
  stream.on("drain", goOn).on("close", goOn);
  for await (const piece of archive) {
    if (!stream.write(piece) && !stream.destroyed) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  stream.end(undefined);
}

async function writeNew(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const piece of bytes) await file.writeFile(piece);
  } finally {
    await file.close();
  }
}

async function makeFolder(path: string): Promise<void> {
  const info = await lstat(path).catch(() => undefined);
  if (info && !info.isDirectory()) await rm(path, { force: true });
  await mkdir(path, { recursive: true });
}

async function replace(path: string, make: () => Promise<void>): Promise<void> {
  await rm(path, { force: true });
  await make();
}

/** Sets the mode, without set-user-ID and the like, and the time. */
async function settle(path: string, { mode = 0o644, mtime }: Header): Promise<void> {
  await chmod(path, mode & 0o777);
  if (mtime) await utimes(path, mtime, mtime);
}
