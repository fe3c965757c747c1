/** What Podman's storage can do on its disk. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../shared/config.ts";
import { countersOf } from "../storage/counters.ts";

/** Whether the kernel limits what sandboxes store: on a volume that counts, with a helper that sets limits. */
export const hasStorageLimits = ({ volumeDir, helper }: Config): boolean => volumeDir !== "" && helper !== "" && existsSync(countersOf(volumeDir));

/** Podman has folders named after its driver; `podman info`, which also tells, takes half a second. */
export function storageDriver({ storageDir }: Config): string {
  const dir = join(storageDir, "storage");
  const folders = existsSync(dir) ? readdirSync(dir) : [];
  return folders.flatMap((name) => /^(.+)-layers$/.exec(name)?.[1] ?? [])[0] ?? "unknown";
}
