/** Disk space: of a sandbox's writable layer and of the host. */
import { statfs } from "node:fs/promises";
import { run } from "./run.ts";

const measureTimeoutMs = 60_000;

/** Bytes that a sandbox's writable layer takes on disk, or undefined when it could not be measured. */
export async function layerBytes(dir: string): Promise<number | undefined> {
  // du reports files that vanish while it walks by its exit code; the sum is good all the same.
  const result = await run("du", ["--summarize", "--one-file-system", "--block-size=1", dir], { timeoutMs: measureTimeoutMs });
  const bytes = Number.parseInt(result.stdout, 10);
  return Number.isNaN(bytes) ? undefined : bytes;
}

/** Bytes free for an unprivileged user on the file system that holds the path. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
