/** Downloads of files and folders from a sandbox. */
import { mkdir, realpath } from "node:fs/promises";
import { dirname, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";
import type { SandboxHandle } from "../../client/sandbox.ts";
import type { OnProgress } from "../../client/transfer.ts";
import { print } from "../output.ts";
import { entriesOf, extractTo, nameBelow } from "./extract.ts";
import type { Copied } from "./upload.ts";

export async function downloadFile(sandbox: SandboxHandle, path: string, local: string, onProgress: OnProgress): Promise<Copied> {
  await mkdir(dirname(local), { recursive: true });
  return { files: 1, bytes: await sandbox.downloadFile(path, local, { onProgress }), skipped: 0 };
}

/** @param local the local folder, which is created if missing */
export async function downloadFolder(sandbox: SandboxHandle, path: string, local: string, onProgress: OnProgress): Promise<Copied> {
  const archive = await sandbox.download(path, { archive: "tar", onProgress });
  await mkdir(local, { recursive: true });
  return extractTo(await realpath(local), archive);
}

/**
 * Downloads a file or folder as a tar archive.
 *
 * @param folder the folder for the names in the archive; `.` for none
 * @throws {CliError} for a malicious archive
 */
export async function downloadArchive(sandbox: SandboxHandle, path: string, folder: string, out: NodeJS.WriteStream, onProgress: OnProgress): Promise<Copied> {
  const archive = await sandbox.download(path, { archive: "tar", onProgress });
  const renamed = pack();
  const done = { files: 0, bytes: 0, skipped: 0 };
  const renaming = rename(archive, folder, renamed, done).catch((error: Error) => renamed.destroy(error));
  for await (const piece of renamed) await print(out, piece as Uint8Array);
  await renaming;
  return done;
}

async function rename(archive: AsyncIterable<Uint8Array>, folder: string, renamed: Pack, done: { files: number; bytes: number }): Promise<void> {
  // The archive comes from the sandbox: none of its names may lead out of the folder where this one is unpacked.
  const within = (name: string): string => posix.join(folder, nameBelow(name) ?? "");
  for await (const entry of entriesOf(archive)) {
    const { header } = entry;
    const name = `${within(header.name)}${header.type === "directory" ? "/" : ""}`;
    const linkname = header.type === "link" && header.linkname ? within(header.linkname) : header.linkname;
    // Names too long for the old format are also in `pax`, which would take precedence.
    const target = renamed.entry({ ...header, name, linkname: linkname ?? null, pax: null });
    await pipeline(entry, target);
    done.files++;
    done.bytes += header.size ?? 0;
  }
  renamed.finalize();
}
