/** Files and folders out of a sandbox. */
import { mkdir, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import type { SandboxHandle } from "../../client/sandbox.ts";
import type { OnProgress } from "../../client/transfer.ts";
import { extractTo } from "./extract.ts";
import type { Copied } from "./upload.ts";

export async function downloadFile(sandbox: SandboxHandle, path: string, local: string, onProgress: OnProgress): Promise<Copied> {
  await mkdir(dirname(local), { recursive: true });
  return { files: 1, bytes: await sandbox.downloadFile(path, local, { onProgress }), skipped: 0 };
}

/** @param local the folder here, which is made where it is missing */
export async function downloadFolder(sandbox: SandboxHandle, path: string, local: string, onProgress: OnProgress): Promise<Copied> {
  const archive = await sandbox.download(path, { archive: "tar", onProgress });
  await mkdir(local, { recursive: true });
  return extractTo(await realpath(local), archive);
}
