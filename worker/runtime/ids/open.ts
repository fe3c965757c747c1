/** Finds out, by trying it, whether sandboxes can have ranges of ids of their own here. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { HostCheck } from "../../../shared/bus/heartbeat.ts";
import type { Config } from "../../../shared/config.ts";
import { idsPerSandbox } from "../../../shared/privileged.ts";
import type { PrivilegedHelper } from "../privileged/helper.ts";
import { run } from "../process/run.ts";
import type { Subvolumes } from "../storage/subvolumes.ts";
import { Claims } from "./claims.ts";
import { firstIdOf, IdRanges, rootOnStage, type Trees } from "./ranges.ts";

const timeoutMs = 30_000;
/** Folders for mounts, of which one is covered in the worker's own mount namespace, with one that every id may pass. */
const stages = ["/mnt", "/media", "/srv", "/opt"];
const stageType = "sandgate-roots";

/** What a worker can give its sandboxes, and how that is shown to operators. */
export interface Ids {
  /** Undefined where they share those of the worker's user. */
  readonly ranges: IdRanges | undefined;
  /** Whether new sandboxes get one. */
  readonly areGiven: boolean;
  /** Where the root of a sandbox with a range is mounted for its container, also by an earlier process; undefined for nowhere. */
  readonly stageOf: (sandboxId: string) => string | undefined;
  readonly check: HostCheck;
}

interface Ground {
  readonly config: Config;
  readonly workerId: string;
  readonly helper: PrivilegedHelper | undefined;
  readonly volume: Subvolumes | undefined;
}

export async function openIds(ground: Ground): Promise<Ids> {
  const { config, workerId } = ground;
  const top = topFor(config);
  const stage = top && join(top, workerId);
  const stageOf = (sandboxId: string): string | undefined => stage && rootOnStage(stage, sandboxId);
  const found = await findRanges(ground, top).catch((error: unknown) => reasonOf(error));
  const ranges = typeof found === "string" ? undefined : found;
  const why = config.userIds === "shared" ? "turned off by SANDGATE_USER_IDS" : typeof found === "string" ? found : undefined;
  const name = "user_ids";
  if (why === undefined) return { ranges, areGiven: true, stageOf, check: { name, value: "a range for each sandbox", ok: true } };
  return { ranges, areGiven: false, stageOf, check: { name, value: "shared by all sandboxes", ok: false, note: why } };
}

/** @returns why there are none, otherwise */
async function findRanges({ config, workerId, helper, volume }: Ground, top: string | undefined): Promise<IdRanges | string> {
  if (top === undefined) return `the folders of this installation are in ${stages.join(", ")}`;
  if (!helper || !volume) return "needs the volume and its helper";
  const count = Math.min(...["uid_map", "gid_map"].map((file) => rangesIn(readFileSync(`/proc/self/${file}`, "utf8"))));
  if (count < 1) return "the worker's user has too few ids, or got more after Podman was started";
  const images = join(config.storageDir, "storage/overlay");
  const trees: Trees = { dir: join(volume.dir, "trees"), shown: { volume: volume.dir, images } };
  const stage = join(top, workerId);
  await openStage(top, stage);
  const claims = new Claims(join(config.runtimeDir, "ranges"), join(config.runtimeDir, workerId, "ranges"), count);
  const ranges = new IdRanges({ helper, trees, stage, claims });
  await showTrees(trees);
  await ranges.hideAll();
  await ranges.show("probe", 0, (place) => tryOverlay(volume.dir, ranges.stageOf("probe"), place));
  return ranges;
}

/** How many whole ranges a user namespace has beyond the ids that its sandboxes share. */
export function rangesIn(map: string): number {
  const ids = map.split("\n").reduce((sum, line) => sum + Number(line.trim().split(/\s+/)[2] ?? 0), 0);
  return Math.max(0, Math.floor((ids - 1) / idsPerSandbox) - 1);
}

/** The folder to cover: one that holds nothing of this installation. */
function topFor({ dataDir, storageDir, runtimeDir, volumeDir }: Config): string | undefined {
  const needed = [dataDir, storageDir, runtimeDir, volumeDir, process.cwd()].map((dir) => `${resolve(dir)}/`);
  return stages.find((dir) => existsSync(dir) && !needed.some((each) => each.startsWith(`${dir}/`)));
}

/**
 * The root of a container has no rights on the folders of the worker's user, and must find its files all the same. So they are
 * mounted in a folder that everybody may pass, which only exists in Podman's mount namespace.
 */
async function openStage(top: string, stage: string): Promise<void> {
  const script = `grep -q " $1 .* - tmpfs ${stageType} " /proc/self/mountinfo || mount -t tmpfs -o mode=711,size=16m ${stageType} "$1"
    mkdir -p -m 711 "$2"`;
  await prepare(script, top, stage);
}

/** Those of an earlier process are used. */
async function showTrees({ dir, shown }: Trees): Promise<void> {
  const script = `mkdir -p "$2"; [ "$1" -ef "$2" ] || mount --bind --make-private "$1" "$2"`;
  for (const [name, tree] of Object.entries(shown)) await prepare(script, tree, join(dir, name));
}

/**
 * An overlay has been possible over such mounts since Linux 5.19. On a full volume it cannot be written to; sandboxes that have
 * ranges already keep them all the same.
 */
async function tryOverlay(volume: string, stage: string, place: (dir: string) => string): Promise<void> {
  const own = join(volume, "probe");
  const script = `set -e
    mkdir -p "$1/lower" "$1/diff" "$1/work" "$3"
    mount -t overlay overlay -o "lowerdir=$2/lower,upperdir=$2/diff,workdir=$2/work,userxattr" "$3"
    owner=$(stat -c %u "$3")
    [ -w "$3" ] || ! mkdir "$1/room" || owner=none
    [ ! -d "$1/room" ] || rmdir "$1/room"
    umount --lazy "$3"
    rmdir "$3"
    [ "$owner" = "$4" ]`;
  await prepare(script, own, place(own), stage, String(firstIdOf(0)));
}

async function prepare(script: string, ...args: readonly string[]): Promise<void> {
  const result = await run("sh", ["-c", script, "sh", ...args], { timeoutMs });
  if (result.exitCode !== 0) throw new Error(result.stderr.trim() || "files are shown with other ids than those of the range");
}

/** That of the helper, if it was the helper's. */
function reasonOf(error: unknown): string {
  const last = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return last instanceof Error ? last.message : String(last);
}
