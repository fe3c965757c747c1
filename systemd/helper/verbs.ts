/** What the privileged helper does for the worker, each on its installation's volume or the worker's own files only. Runs as root. */
import { stat, statfs, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { faultPoint } from "../../shared/faults.ts";
import type { FieldsOf, Verb } from "../../shared/privileged.ts";
import { mountAt } from "../../shared/util/mounts.ts";
import { messageOf } from "../base/failure.ts";
import { run } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import { idFiles, idRangesOf, mapOfRange } from "../base/subordinate-ids.ts";
import { nextSize } from "../volume/growth.ts";
import { fileSystemBytes, type Volume } from "../volume/volume.ts";
import { mapIds, type ServedWorker } from "./map-ids.ts";
import type { MemoryImages } from "./memory/images.ts";
import type { ImagePlace } from "./memory/room.ts";
import { Refusal } from "./refusal.ts";

const blockBytes = 512; // the unit of stat(2)
const timeoutMs = 60_000;

/** Whom the helper serves, and on what. */
export interface Served {
  readonly volume: Volume;
  readonly images: ImagePlace;
  readonly worker: ServedWorker;
}

/** What requests of one connection have in common. */
export interface Connected extends Served {
  readonly memory: MemoryImages;
}

/** Each resolves with what is replied, if anything is. */
type Verbs = { readonly [V in Verb]: (connected: Connected, fields: FieldsOf<V>) => Promise<number | undefined> };

/** @throws {Refusal} */
export const verbs: Verbs = {
  "quota.set": async ({ volume: { dir } }, { subvolume, bytes }) => {
    deviceOf(dir);
    await command("btrfs", "qgroup", "limit", String(bytes), `0/${subvolume}`, dir);
  },
  "volume.grow": async ({ volume: { dir, image } }, { bytes: moreBytes }) => {
    if (!image) throw new Refusal("exhausted", "the volume is the operator's and does not grow by itself (SANDGATE_VOLUME)");
    const { file, bytesMax, floorBytes } = image;
    const device = deviceOf(dir);
    const [bytes, { blocks, size }, disk] = [await fileSystemBytes(dir), await stat(file), await statfs(dirname(file))];
    const next = nextSize({ bytes, allocatedBytes: blocks * blockBytes, bytesMax }, { freeBytes: disk.bavail * disk.bsize, floorBytes }, moreBytes);
    if (next === "largest") throw new Refusal("exhausted", "the volume has its largest size (SANDGATE_VOLUME_BYTES_MAX)");
    if (next === "disk") throw new Refusal("exhausted", "the disk has no room for a larger volume (SANDGATE_DISK_FLOOR_BYTES)");
    // A growth that was interrupted may have left the file larger than its file system.
    if (next > size) await truncate(file, next);
    faultPoint("volume.grow.file");
    await command("losetup", "--set-capacity", device);
    faultPoint("volume.grow.device");
    await command("btrfs", "filesystem", "resize", String(next), dir);
  },
  "ids.map": async ({ worker }, { range, source, target }) => {
    const { uid, gid } = worker.account;
    const users = mapOfRange(uid, idRangesOf(worker.account, idFiles.user), range);
    const groups = mapOfRange(gid, idRangesOf(worker.account, idFiles.group), range);
    if (!users || !groups) throw new Refusal("failed", `the account has no ids for range ${range}`);
    await command(...mapIds(worker, { source, target }, [users, groups]));
  },
  "memory.check": async ({ memory }) => void (await memory.check()),
  "memory.dump": async ({ memory }, { image, process }) => void (await memory.dump(image, process)),
  "memory.resume": ({ memory }, { image }) => memory.resume(image),
  "memory.restore": ({ memory }, { image, process }) => memory.restore(image, process),
  "memory.connect": async ({ memory }, { process, copy }) => void (await memory.connect(process, copy)),
  "memory.identify": ({ memory }, { image }) => memory.identify(image),
  "memory.export": async ({ memory }, { image, pipe }) => void (await memory.export(image, pipe)),
  "memory.import": ({ memory }, { image, identity, pipe }) => memory.import(image, identity, pipe),
  "memory.remove": async ({ memory }, { image }) => void (await memory.remove(image)),
};

/** Where the volume is stored, so that nothing is done to the folder below when it is not mounted. */
function deviceOf(dir: string): string {
  const mount = mountAt(dir);
  if (mount?.type !== "btrfs") throw new Refusal("failed", "the volume is not mounted");
  return mount.source;
}

async function command(...argv: string[]): Promise<void> {
  await run(argv, { env: { PATH: searchPath, LC_ALL: "C" }, cwd: "/", timeoutMs }).catch((error: unknown) => {
    throw new Refusal("failed", messageOf(error));
  });
}
