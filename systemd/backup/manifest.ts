/** The list of what is in a backup, by which a restore knows that all of it is there and unchanged. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join, normalize } from "node:path";
import Type, { type Static } from "typebox";
import { checker } from "../../shared/schemas/validate.ts";
import { attempt } from "../../shared/util/attempt.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import { readIfThere } from "../base/write-file.ts";
import { Owner } from "./owners.ts";

/** Raised when a former program could not restore what is in a backup. */
export const formatVersion = 1;
const manifestName = "manifest.json";

const BackedUpFile = Type.Object({ name: Type.String(), bytes: Type.Integer(), sha256: Type.String(), owner: Type.Optional(Owner) });
export type BackedUpFile = Static<typeof BackedUpFile>;

const Manifest = Type.Object({
  format: Type.Literal(formatVersion),
  /** Of the program that made it. */
  version: Type.String(),
  nats_version: Type.String(),
  created_at: Type.String(),
  host: Type.String(),
  /** The worker whose records are in it, if one runs on the machine. */
  worker_id: Type.Optional(Type.String({ pattern: "^[a-zA-Z0-9_-]{1,63}$" })),
  /** Whether it is of an installation that runs as services, with the settings of those. */
  services: Type.Boolean(),
  /** Snapshots whose files were not in the object store yet, and so are not in the backup. */
  snapshots_without_files: Type.Array(Type.String()),
  files: Type.Array(BackedUpFile),
});
export type Manifest = Static<typeof Manifest>;

const check = checker(Manifest);

export const manifestFile = (dir: string): string => join(dir, manifestName);

/**
 * Reads the manifest of a backup, and compares every file with it.
 *
 * @throws {StartFailure} naming the first file that is missing, truncated or altered; for what is no backup or has a newer format
 */
export async function verifiedManifest(dir: string): Promise<Manifest> {
  const real = trustedPath(dir);
  const manifest = parse(real, await readIfThere(manifestFile(real)).catch(refuse(real)));
  for (const file of manifest.files) await verify(real, file);
  return manifest;
}

const refuse =
  (dir: string) =>
  (cause: unknown): never => {
    throw new StartFailure(`${dir} cannot be read: ${messageOf(cause)}`, { cause });
  };

function parse(dir: string, text: string | undefined): Manifest {
  if (text === undefined) throw new StartFailure(`${dir} is no backup of Sandgate: it has no ${manifestName}`);
  const value = attempt(() => JSON.parse(text) as { format?: unknown } | null);
  const format = Number(value?.format);
  if (format > formatVersion) {
    throw new StartFailure(`${dir} was made by a newer version of Sandgate (format ${format}, this one knows ${formatVersion}): restore it with that version`);
  }
  const manifest = attempt(() => check(value));
  if (!manifest) throw new StartFailure(`${manifestFile(dir)} is damaged, or not that of a backup of Sandgate`);
  for (const { name } of manifest.files) if (isOutside(name)) throw new StartFailure(`${manifestFile(dir)} names a file outside of the backup: ${name}`);
  return manifest;
}

const isOutside = (name: string): boolean => name === "" || name.startsWith("/") || normalize(name) !== name || name.split("/").includes("..");

async function verify(dir: string, { name, bytes, sha256 }: BackedUpFile): Promise<void> {
  const path = join(dir, name);
  const found = await lstat(path).catch(() => undefined);
  if (!found) throw new StartFailure(`the backup is not whole: ${path} is missing`);
  if (!found.isFile()) throw new StartFailure(`the backup was altered: ${path} is not a file`);
  if (found.size !== bytes) throw new StartFailure(`the backup is damaged: ${path} has ${found.size} bytes, not ${bytes}`);
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  if (hash.digest("hex") !== sha256) throw new StartFailure(`the backup was altered or is damaged: ${path} is not as it was written`);
}

/** Whether there is nothing in a folder, or no folder. @throws {StartFailure} if it is something else */
export async function isFree(dir: string): Promise<boolean> {
  const found = await lstat(dir).catch(() => undefined);
  if (!found) return true;
  if (!found.isDirectory()) throw new StartFailure(`${dir} is not a folder`);
  return (await readdir(dir)).length === 0;
}
