/** What the set-up gives the other services, in a folder of root's that is gone after a restart of the machine. */
import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileVariable, secretSettings } from "../../shared/config.ts";
import { attempt } from "../../shared/util/attempt.ts";
import { credentialName } from "../base/unit-credentials.ts";
import { replaceFile } from "../base/write-file.ts";
import { secretName } from "../supervisor/credentials.ts";

/** Made by systemd for the set-up's service, and removed when that stops. */
export const givenDir = "/run/sandgate";
/** Where the worker reaches the helper. */
export const helperSocket = join(givenDir, "helper.socket");
/** The arguments of a helper, as JSON. */
const helperFile = join(givenDir, "helper.json");
const dataFile = join(givenDir, "data");

const onlyRoot = { mode: 0o600 };
const forEverybody = 0o004;

/** Where the environment of a service is. */
export const environmentFile = (service: string): string => join(givenDir, `${service}.env`);

/** The folder of which systemd hands each file to a service as a credential. */
export const credentialsFolder = (service: string): string => join(givenDir, "credentials", service);

/**
 * Gives a service what it is started with; only systemd reads it. Secrets that the environment names by their files become
 * credentials.
 *
 * @param files further ones that only root can read
 * @throws {Error} on a value that a file of this kind cannot hold
 */
export async function give(service: string, environment: Readonly<Record<string, string>>, files: readonly string[] = []): Promise<void> {
  const secrets = new Map(await Promise.all(files.map(async (file) => [basename(file), await readFile(file)] as const)));
  const named: Record<string, string> = {};
  for (const setting of secretSettings) {
    const variable = fileVariable(setting.name);
    const file = environment[variable];
    // What everybody can read is no secret, and may change while the service runs.
    if (!file || ((await stat(file)).mode & forEverybody) !== 0) continue;
    secrets.set(secretName(setting.name), await readFile(file));
    named[variable] = credentialName(secretName(setting.name));
  }
  await giveCredentials(credentialsFolder(service), secrets);
  const lines = Object.entries({ ...environment, ...named }).map(([name, value]) => `${name}=${quoted(name, value)}\n`);
  await replaceFile(environmentFile(service), lines.join(""), onlyRoot);
}

/** Makes a folder contain these files and no others. */
async function giveCredentials(folder: string, secrets: ReadonlyMap<string, Uint8Array>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) if (!secrets.has(name)) await rm(join(folder, name));
  for (const [name, text] of secrets) await replaceFile(join(folder, name), text, onlyRoot);
}

export const giveHelper = (argv: readonly string[]): Promise<void> => replaceFile(helperFile, JSON.stringify(argv), onlyRoot);

export const givenToHelper = (): string[] => JSON.parse(readFileSync(helperFile, "utf8")) as string[];

export const giveData = (dir: string): Promise<void> => replaceFile(dataFile, dir, { mode: 0o644 });

/** The data directory of the services, while they are set up. */
export const dataOfServices = (): string | undefined => attempt(() => readFileSync(dataFile, "utf8"));

/** As systemd.exec(5) reads it. */
export function quoted(name: string, value: string): string {
  if (/[\n\r\0]/.test(value)) throw new Error(`${name} has a line break, which a service cannot be given`);
  return `"${value.replace(/[\\"$`]/g, "\\$&")}"`;
}
