/** A btrfs file system that the operator has mounted for the volume (SANDGATE_VOLUME). */
import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { type Mount, mountAt } from "../../shared/util/mounts.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import type { Volume } from "../volume/volume.ts";

const options = ["user_subvol_rm_allowed", "nosuid", "nodev"];

/** @throws {StartFailure} saying what is to be done, if it cannot be used */
export function operatorsVolume({ config, account }: Instance): Volume {
  const path = resolve(appDir, config.volume);
  const dir = join(trustedPath(dirname(path)), basename(path));
  const fault = faultOf(mountAt(dir)) ?? foreignEntry(dir, account.uid);
  if (fault) throw new StartFailure(`SANDGATE_VOLUME=${config.volume} cannot be used: ${fault}`);
  return { dir };
}

/** Limits are set by ids of subvolumes, of which a file system that is shared with others has theirs as well. */
function faultOf(mount: Mount | undefined): string | undefined {
  if (!mount) return "nothing is mounted there";
  if (mount.type !== "btrfs") return `it is a file system of type ${mount.type}; btrfs is needed`;
  if (mount.root !== "/") return `it is the subvolume ${mount.root} of a file system; a whole one is needed`;
  const missing = options.filter((option) => ![...mount.options, ...mount.systemOptions].includes(option));
  return missing.length > 0 ? `mount it with the options ${missing.join(",")}` : undefined;
}

function foreignEntry(dir: string, uid: number): string | undefined {
  const foreign = readdirSync(dir).find((name) => statSync(join(dir, name), { throwIfNoEntry: false })?.uid !== uid);
  return foreign === undefined ? undefined : `it holds ${foreign}, which belongs to somebody else; a file system of its own is needed`;
}
