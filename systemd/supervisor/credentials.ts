/** Secrets that are made once, and the files from which the parts read them. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Config, fileVariable, secretSettings } from "../../shared/config.ts";
import type { Account, Instance, PartName } from "../base/instance.ts";
import { type Ownership, readIfThere, replaceFile } from "../base/write-file.ts";

/** The ownership of a file that this user and one account can read, and only this user can change. */
export function readableBy({ uid, gid }: Account): Ownership {
  const own = process.getuid?.() ?? uid;
  return own === uid ? { mode: 0o600 } : { mode: 0o640, uid: own, gid };
}

/** The ownership of a secret of a part's: for its account, or for root alone where systemd hands it on. */
export const secretFor = ({ accounts, starter }: Pick<Instance, "accounts" | "starter">, part: PartName): Ownership =>
  starter === "systemd" ? { mode: 0o600, uid: 0, gid: 0 } : readableBy(accounts[part]);

/**
 * The API key of the first account: the configured one, else the one made at the first start. The file always contains the
 * current key, because `sandgate-admin` and users read it there.
 */
export async function apiKeyOf({ config, paths }: Instance): Promise<string> {
  const { bootstrapApiKey: configured } = config;
  if (!configured) return kept(paths.apiKey, () => `sg_${randomBytes(36).toString("base64url")}`);
  const known = (await readIfThere(paths.apiKey))?.trim();
  if (known !== configured) await replaceFile(paths.apiKey, `${configured}\n`, { mode: 0o600 });
  return configured;
}

/** What the file with a secret setting is called. */
export const secretName = (variable: string): string => variable.replace("SANDGATE_", "").replaceAll("_", "-").toLowerCase();

/**
 * Writes the secret settings of a part to files that only it can read, or is given by systemd, and returns the settings that
 * name these files. In the environment, every process of the same user could read them.
 */
export async function secretFiles(instance: Instance, part: PartName, values: Partial<Config>): Promise<Record<string, string>> {
  const given: Record<string, string> = {};
  for (const { key, name } of secretSettings) {
    const path = join(instance.paths.secrets, `${part}.${secretName(name)}`);
    const value = values[key];
    if (value) await replaceFile(path, `${value}\n`, secretFor(instance, part));
    else await rm(path, { force: true });
    if (value) given[fileVariable(name)] = path;
  }
  return given;
}

/**
 * Returns the content of a file, which is made first if there is none.
 *
 * @param ownership the file's owner. If given, the file is rewritten at every call, because its owner may have changed.
 */
export async function kept(file: string, make: () => string | Promise<string>, ownership?: Ownership): Promise<string> {
  const known = (await readIfThere(file))?.trim();
  const text = known || (await make());
  if (!known || ownership) await replaceFile(file, `${text}\n`, ownership ?? { mode: 0o600 });
  return text;
}
