/** Secrets that are made once and kept in files that only the supervisor's user can read. */
import { randomBytes } from "node:crypto";
import type { Instance } from "../instance.ts";
import { readIfThere, replaceFile } from "../write-file.ts";

/**
 * The API key of the first account: as configured, else the one made on the first start. The file always holds the one
 * that counts, because `sandgate-admin` and people look there; whoever can read it can read the settings of the parts.
 */
export async function apiKeyOf({ config, paths }: Instance): Promise<string> {
  const { bootstrapApiKey: configured } = config;
  if (!configured) return keptSecret(paths.apiKey, () => `sg_${randomBytes(36).toString("base64url")}`);
  const kept = (await readIfThere(paths.apiKey))?.trim();
  if (kept !== configured) await replaceFile(paths.apiKey, `${configured}\n`, { mode: 0o600 });
  return configured;
}

/** The password that keeps other users of this machine out of the owned NATS server. */
export async function natsPasswordOf({ paths }: Instance): Promise<string> {
  return keptSecret(paths.natsPassword, () => randomBytes(24).toString("base64url"));
}

async function keptSecret(file: string, make: () => string): Promise<string> {
  const kept = (await readIfThere(file))?.trim();
  if (kept) return kept;
  const made = make();
  await replaceFile(file, `${made}\n`, { mode: 0o600 });
  return made;
}
