/** The limits of subvolumes: turned on, and kept exact. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { mountAt } from "../../shared/util/mounts.ts";
import { CommandError } from "../base/run.ts";
import type { Administrator } from "./administrator.ts";

const fileSystems = "/sys/fs/btrfs";

/**
 * Deleting a subvolume with a tree of more levels than this makes btrfs stop counting for all of them, so that no limit holds
 * any more, until they have been counted anew. The kernel's default saves time in large deletions; this value is the highest.
 */
const levelsCounted = 8;

/** Each takes a few milliseconds of the start. */
const forgottenMax = 200;

type AsRoot = (...argv: string[]) => Promise<string>;

/** Turns limits on, and has everything counted anew if the counts are no longer exact. */
export async function enforceQuotas(dir: string, administrator: Administrator): Promise<void> {
  const asRoot: AsRoot = (...argv) => administrator.run("limit what sandboxes store", argv);
  await asRoot("btrfs", "quota", "enable", dir);
  await forgetDeleted(dir, asRoot);
  const groups = groupsOf(basename(mountAt(dir)?.source ?? ""));
  if (groups === undefined) return;
  const levels = join(groups, "drop_subtree_threshold");
  // Older kernels have no such setting, and always count.
  if (existsSync(levels) && read(levels) !== levelsCounted) await asRoot("sh", "-c", `echo ${levelsCounted} > "$1"`, "sh", levels);
  if (read(join(groups, "inconsistent")) === 1) await asRoot("btrfs", "quota", "rescan", dir).catch(unlessCounting);
}

/** Older kernels keep the counts and limits of subvolumes that have been deleted, without number. */
async function forgetDeleted(dir: string, asRoot: AsRoot): Promise<void> {
  const groups = (await asRoot("btrfs", "qgroup", "show", dir)).split("\n").filter((line) => line.endsWith("<stale>"));
  for (const group of groups.slice(0, forgottenMax)) {
    // One whose subvolume is still being deleted is kept.
    await asRoot("btrfs", "qgroup", "destroy", group.split(" ", 1)[0] ?? "", dir).catch((error: unknown) => {
      if (!(error instanceof CommandError)) throw error;
    });
  }
}

/** Turning limits on also has everything counted. */
function unlessCounting(error: unknown): void {
  if (!(error instanceof CommandError) || !error.output.includes("in progress")) throw error;
}

/** Where the kernel shows the state of limits; before Linux 5.9, nowhere. */
function groupsOf(device: string): string | undefined {
  const found = existsSync(fileSystems) ? readdirSync(fileSystems) : [];
  const own = found.find((name) => existsSync(join(fileSystems, name, "devices", device)));
  const groups = own && join(fileSystems, own, "qgroups");
  return groups && existsSync(groups) ? groups : undefined;
}

function read(file: string): number | undefined {
  return existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
}
