/** Where a restored installation goes, and what has been there before: kept beside it, never written over. */
import { existsSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type Config, loadConfig, processEnvironment } from "../../shared/config.ts";
import type { Environment } from "../../shared/setting-kinds.ts";
import { mountAt } from "../../shared/util/mounts.ts";
import { StartFailure } from "../base/failure.ts";
import { pathsOf } from "../base/instance.ts";
import { succeeds } from "../base/run.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { replaceFile } from "../base/write-file.ts";
import { keepStartOut } from "../supervisor/alone.ts";
import { runningParts } from "../supervisor/leftovers.ts";
import { parseSettings, settingsDir, settingsFile } from "../units/places.ts";
import { settingsName, settingsPrefix } from "./kept.ts";
import type { Manifest } from "./manifest.ts";
import { readable } from "./named.ts";
import { refuseBesideNodes } from "./nodes.ts";
import { ownershipOf } from "./owners.ts";

/** A folder that is made under another name, and what it takes the place of. */
interface Folder {
  readonly dir: string;
  readonly partial: string;
}

export interface Place {
  readonly config: Config;
  /** What the restored settings say. */
  readonly environment: Environment;
  readonly data: string;
  readonly partial: string;
  /** Of services. */
  readonly settings: Folder | undefined;
  /** Lets others start again. */
  release(): void;
}

const services = ["sandgate-nats.service", "sandgate-cluster.service", "sandgate-worker.service", "sandgate-gateway@*.service"];

/** @throws {StartFailure} if there is an installation with data and it is not to be replaced, one that runs, or another server of its cluster */
export async function placeFor(dir: string, manifest: Manifest, replace: boolean): Promise<Place> {
  const environment = await environmentOf(dir, manifest);
  const config = loadConfig(readable(dir, environment));
  if (manifest.services && process.getuid?.() !== 0) throw new StartFailure("This backup is of services of systemd, which only root can restore; use sudo.");
  const { data, supervisor, volume } = pathsOf(config);
  const parent = trustedPath(dirname(data), { make: 0o755 });
  const own = join(parent, basename(data));
  const lock = existsSync(supervisor) ? await keepStartOut(supervisor) : undefined;
  try {
    await refuseRunning(manifest, { supervisor, volume });
    await refuseBesideNodes(dir);
    const settings = manifest.services ? { dir: settingsDir, partial: `${settingsDir}.restoring` } : undefined;
    const kept = [own, ...(settings ? [settings.dir] : [])].filter(hasData);
    if (kept.length > 0 && !replace) {
      throw new StartFailure(`There is an installation already: ${kept.join(", ")}. With --replace it is moved aside, and the backup takes its place.`);
    }
    return { config, environment, data: own, partial: `${own}.restoring`, settings, release: () => lock?.release() };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

const hasData = (dir: string): boolean => ["api-key", "nats/jetstream", "worker", basename(settingsFile)].some((name) => existsSync(join(dir, name)));

/** What the settings in the backup say; without services, what the environment says takes precedence, as at a start. */
async function environmentOf(dir: string, { services: isServices }: Manifest): Promise<Environment> {
  const textOf = (name: string): Promise<string> => readFile(join(dir, name), "utf8").catch(() => "");
  if (isServices) return parseSettings(await textOf(settingsPrefix + basename(settingsFile)));
  return { ...parseSettings(await textOf(settingsName)), ...processEnvironment() };
}

async function refuseRunning(manifest: Manifest, { supervisor, volume }: { readonly supervisor: string; readonly volume: string }): Promise<void> {
  const parts = existsSync(supervisor) ? await runningParts(supervisor) : [];
  if (parts.length > 0) throw new StartFailure(`Stop Sandgate first: ${parts.join(", ")} of an earlier start still run.`);
  if (manifest.services) {
    for (const unit of services) {
      if (!(await succeeds(["systemctl", "is-active", "--quiet", unit]))) continue;
      throw new StartFailure(`${unit} runs. Stop everything first: systemctl stop sandgate.target sandgate-setup.service`);
    }
  }
  if (!mountAt(volume)) return;
  throw new StartFailure(
    `The volume of the installation is mounted at ${volume}: its sandboxes may still run. End them and unmount it first: systemctl stop sandgate.target sandgate-setup.service, then systemctl stop user@$(id -u sandgate).service, umount ${volume}`,
  );
}

/** Writes the settings of services beside their place. */
export async function writeSettings(dir: string, manifest: Manifest, { settings }: Place): Promise<void> {
  if (!settings) return;
  trustedPath(settings.partial, { make: 0o755 });
  for (const file of manifest.files.filter(({ name }) => name.startsWith(settingsPrefix))) {
    const path = join(settings.partial, file.name.slice(settingsPrefix.length));
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await replaceFile(path, await readFile(join(dir, file.name)), await ownershipOf(file));
  }
}

/** Moves aside what is there, and the restored installation to its place. @returns where the former folders are now */
export async function putInPlace({ data, partial, settings }: Place): Promise<string[]> {
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  const replaced: string[] = [];
  for (const { dir, partial: made } of [...(settings ? [settings] : []), { dir: data, partial }]) {
    const found = await lstat(dir).catch(() => undefined);
    if (found && !(found.isDirectory() && (await readdir(dir)).length === 0)) {
      const aside = `${resolve(dir)}.replaced-${stamp}`;
      await rename(dir, aside);
      replaced.push(aside);
    }
    await rename(made, dir);
  }
  return replaced;
}
