/**
 * Files elsewhere that the settings name: secrets of `*_FILE`, and certificates. A backup has them by their variables, and they
 * are restored to where the restored settings say.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileVariables } from "../../shared/config.ts";
import type { Environment } from "../../shared/setting-kinds.ts";
import { trustedPath, UntrustedPath } from "../base/trusted-path.mjs";
import { replaceFile } from "../base/write-file.ts";
import { settingsDir } from "../units/places.ts";
import { settingsPrefix } from "./kept.ts";
import type { Manifest } from "./manifest.ts";
import { ownerOf, ownershipOf } from "./owners.ts";
import type { Target } from "./target.ts";

const namedPrefix = "named/";

interface Named {
  readonly variable: string;
  readonly path: string;
}

const namedFiles = (environment: Environment): Named[] =>
  fileVariables.flatMap((variable) => (environment[variable] ? [{ variable, path: resolve(environment[variable]) }] : []));

const below = (dir: string, path: string): string | undefined => (path.startsWith(`${dir}/`) ? path.slice(dir.length + 1) : undefined);

/** Adds the files to a backup. Those among the settings of services are in it with all that is there. */
export async function addNamed(target: Target, environment: Environment): Promise<void> {
  for (const { variable, path } of namedFiles(environment)) {
    if (below(settingsDir, path)) continue;
    // Read as the parts read it, wherever it is.
    const isFile = (await stat(path).catch(() => undefined))?.isFile();
    if (isFile) await target.add(namedPrefix + variable, [await readFile(path)], await ownerOf(path));
  }
}

/** The settings of a backup, with the files as the backup has them where there are none yet. */
export function readable(dir: string, environment: Environment): Environment {
  const found = namedFiles(environment).flatMap(({ variable, path }) => {
    const [own, among] = [join(dir, namedPrefix + variable), join(dir, settingsPrefix, below(settingsDir, path) ?? "")];
    const copy = [own, ...(below(settingsDir, path) ? [among] : [])].find(existsSync);
    return copy && !existsSync(path) ? [[variable, copy] as const] : [];
  });
  return { ...environment, ...Object.fromEntries(found) };
}

interface Restored {
  /** The backup. */
  readonly dir: string;
  readonly manifest: Manifest;
  /** What the restored settings say. */
  readonly environment: Environment;
  /** The data directory, and where it is being made. */
  readonly data: string;
  readonly partial: string;
  /** Told of each file that cannot be put back. */
  readonly warn: (line: string) => void;
}

/** Writes the files that are missing. What is there stays. @returns what takes them back again */
export async function writeNamed({ dir, manifest, environment, data, partial, warn }: Restored): Promise<() => Promise<void>> {
  const written: string[] = [];
  const undo = async (): Promise<void> => {
    for (const path of written) await rm(path, { force: true });
  };
  try {
    for (const { variable, path } of namedFiles(environment)) {
      const backedUp = manifest.files.find(({ name }) => name === namedPrefix + variable);
      const inside = below(data, path);
      if (!backedUp || (inside === undefined && existsSync(path))) continue;
      const place = inside === undefined ? path : join(partial, inside);
      const from = join(dir, backedUp.name);
      try {
        if (inside === undefined) trustedPath(dirname(place), { make: 0o755 });
        else await mkdir(dirname(place), { recursive: true, mode: 0o755 });
      } catch (error) {
        if (!(error instanceof UntrustedPath)) throw error;
        warn(`${path} of ${variable} is not put back: ${error.message} The backup has it as ${from}.`);
        continue;
      }
      await replaceFile(place, await readFile(from), await ownershipOf(backedUp));
      written.push(place);
    }
    return undo;
  } catch (error) {
    await undo();
    throw error;
  }
}
