/** Secrets that are made once, and the files from which those read them who need them. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Config, fileVariable, secretSettings } from "../../shared/config.ts";
import type { Account, Instance, PartName } from "../base/instance.ts";
import { type Ownership, readIfThere, replaceFile } from "../base/write-file.ts";

/** A file that its maker and one account can read, and only its maker can change. */
export function readableBy({ uid, gid }: Account): Ownership {
  const own = process.getuid?.() ?? uid;
  return own === uid ? { mode: 0o600 } : { mode: 0o640, uid: own, gid };
}

/**
 * The API key of the first account: as configured, else the one made on the first start. The file always holds the one
 * that counts, because `sandgate-admin` and people look there.
 */
export async function apiKeyOf({ config, paths }: Instance): Promise<string> {
  const { bootstrapApiKey: configured } = config;
  if (!configured) return kept(paths.apiKey, () => `sg_${randomBytes(36).toString("base64url")}`);
  const known = (await readIfThere(paths.apiKey))?.trim();
  if (known !== configured) await replaceFile(paths.apiKey, `${configured}\n`, { mode: 0o600 });
  return configured;
}

/**
 * Puts the settings of a part that are secrets into files that it alone can read, and returns the settings that name them.
 * In an environment every process of the same user could read them.
 */
export async function secretFiles({ accounts, paths }: Instance, part: PartName, values: Partial<Config>): Promise<Record<string, string>> {
  const given: Record<string, string> = {};
  for (const { key, name } of secretSettings) {
    const path = join(paths.secrets, `${part}.${name.replace("SANDGATE_", "").replaceAll("_", "-").toLowerCase()}`);
    const value = values[key];
    if (value) await replaceFile(path, `${value}\n`, readableBy(accounts[part]));
    else await rm(path, { force: true });
    if (value) given[fileVariable(name)] = path;
  }
  return given;
}

/**
 * What a file keeps, made where there is none yet.
 *
 * @param ownership whose it is now; then it is written at every call, because that may have been somebody else before.
 */
export async function kept(file: string, make: () => string | Promise<string>, ownership?: Ownership): Promise<string> {
  const known = (await readIfThere(file))?.trim();
  const text = known || (await make());
  if (!known || ownership) await replaceFile(file, `${text}\n`, ownership ?? { mode: 0o600 });
  return text;
}
