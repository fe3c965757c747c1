/** What Podman's storage can do on its disk. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../shared/config.ts";
import { podman } from "../podman/podman.ts";
import { run } from "../process/run.ts";
import { probeTimeoutMs } from "./programs.ts";

/** Podman can limit a container's layer only on XFS with project quotas that this user may set. */
export async function hasStorageQuota(config: Config): Promise<boolean> {
  const result = await run("findmnt", ["--noheadings", "--output", "FSTYPE,OPTIONS", "--target", config.storageDir], { timeoutMs: probeTimeoutMs });
  if (!config.defaultImageId || !/^xfs\s.*\b(prjquota|pquota)\b/.test(result.stdout)) return false;
  const name = `sandgate-probe-${process.pid}`;
  const made = await podman(["create", "--pull", "never", "--name", name, "--storage-opt", "size=1G", config.defaultImageId, "true"]);
  await podman(["rm", "--force", "--ignore", name]);
  return made.exitCode === 0;
}

/** Podman has folders named after its driver; `podman info`, which also tells, takes half a second. */
export function storageDriver({ storageDir }: Config): string {
  const dir = join(storageDir, "storage");
  const folders = existsSync(dir) ? readdirSync(dir) : [];
  return folders.flatMap((name) => /^(.+)-layers$/.exec(name)?.[1] ?? [])[0] ?? "unknown";
}
