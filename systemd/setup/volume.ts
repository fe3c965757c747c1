/** The data volume: made where the start has the rights for that, and mounted, however the last run has ended. */
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Config } from "../../shared/config.ts";
import { mountAt } from "../../shared/util/mounts.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { showInPodman } from "../volume/podman-namespace.ts";
import { isVolume, type NoVolume, type Volume } from "../volume/volume.ts";
import type { Administrator } from "./administrator.ts";
import { operatorsVolume } from "./operators-volume.ts";
import { findProgram } from "./programs.ts";
import { enforceQuotas } from "./quotas.ts";
import { mountImage } from "./volume-image.ts";

/** Why there is to be no volume, if so. */
export async function whyNoVolume({ volume }: Config, administrator: Administrator): Promise<NoVolume | undefined> {
  if (volume === "none") return { reason: "turned off by SANDGATE_VOLUME" };
  return (await administrator.unattended()) ? undefined : { reason: "needs root, or sudo without a password" };
}

/**
 * Mounts the volume, or says why there is none.
 *
 * @throws {StartFailure} if one with sandboxes in it, or the operator's, cannot be used
 */
export async function prepareVolume(instance: Instance, administrator: Administrator): Promise<Volume | NoVolume> {
  const refusal = await whyNoVolume(instance.config, administrator);
  if (refusal) return refusal;
  if (!findProgram("mkfs.btrfs")) return { reason: "the package btrfs-progs is missing" };
  const volume = instance.config.volume ? operatorsVolume(instance) : await ownVolume(instance, administrator);
  if (!isVolume(volume)) return volume;
  await enforceQuotas(volume.dir, administrator);
  await giveToWorker(volume.dir, instance, administrator);
  const show = await showInPodman(instance, volume.dir);
  if (show) await administrator.run("show the volume to Podman", show);
  return volume;
}

async function ownVolume({ config, paths }: Instance, administrator: Administrator): Promise<Volume | NoVolume> {
  const data = trustedPath(paths.data);
  const dir = join(data, basename(paths.volume));
  const image = { file: join(data, basename(paths.volumeImage)), bytesMax: config.volumeBytesMax, floorBytes: config.diskFloorBytes };
  const found = mountAt(dir);
  if (found && found.type !== "btrfs") {
    throw new StartFailure(`The volume belongs at ${dir}, where a file system of type ${found.type} is mounted: unmount it, or set SANDGATE_VOLUME`);
  }
  return (await mountImage(image, dir, administrator)) ?? { dir, image };
}

/** The user cannot replace the folder, on which the volume is mounted, so root may change it by its path. */
async function giveToWorker(dir: string, { account }: Instance, administrator: Administrator): Promise<void> {
  const { uid, gid } = account;
  const found = await stat(dir);
  const why = "give the volume to the worker";
  if (found.uid !== uid || found.gid !== gid) await administrator.run(why, ["chown", `${uid}:${gid}`, dir]);
  if ((found.mode & 0o7777) !== 0o700) await administrator.run(why, ["chmod", "0700", dir]);
}
