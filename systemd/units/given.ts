/** What the set-up gives the other services, in a folder of root's that is gone after a restart of the machine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../shared/util/attempt.ts";
import { replaceFile } from "../base/write-file.ts";

/** Made by systemd for the set-up's service, and removed when that stops. */
const givenDir = "/run/sandgate";
/** Where the worker reaches the helper. */
export const helperSocket = join(givenDir, "helper.socket");
/** The arguments of a helper, as JSON. */
const helperFile = join(givenDir, "helper.json");
const dataFile = join(givenDir, "data");

const onlyRoot = { mode: 0o600 };

/** Where the environment of a service is. */
export const environmentFile = (service: string): string => join(givenDir, `${service}.env`);

/** Writes the environment of a service; only systemd reads it. @throws {Error} on a value that a file of this kind cannot hold */
export async function giveEnvironment(service: string, environment: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(environment).map(([name, value]) => `${name}=${quoted(name, value)}\n`);
  await replaceFile(environmentFile(service), lines.join(""), onlyRoot);
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
