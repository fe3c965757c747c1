/** The gateway and API key to use: from the command line, the environment, or what `login` has stored. */
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { env } from "node:process";
import { clientEnvironment, gatewayUrl, urlDefault } from "../client/client.ts";
import { CliError, messageOf, UsageError } from "./failures.ts";

export interface Stored {
  readonly url: string;
  readonly api_key: string;
}

export interface Access {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** @throws {CliError} if there is no key for the gateway */
export async function findAccess(urlOption: string | undefined, keyOption?: string): Promise<Access> {
  const environment = clientEnvironment();
  const apiKey = keyOption ?? environment.apiKey;
  const stored = await readStored();
  const baseUrl = urlOf(urlOption ?? environment.url) ?? stored?.url ?? urlDefault;
  if (apiKey) return { baseUrl, apiKey };
  // A stored key is only sent to the gateway it was stored for.
  if (stored && isSameGateway(stored.url, baseUrl)) return { baseUrl, apiKey: stored.api_key };
  const elsewhere = stored ? ` for ${baseUrl}; the stored one is for ${stored.url}` : "";
  throw new CliError(`there is no API key${elsewhere}: run sandgate login, or set SANDGATE_API_KEY (and SANDGATE_URL)`);
}

/** Parses an address given by the user. @throws {UsageError} if it is invalid */
export function urlOf(text: string | undefined): string | undefined {
  try {
    if (text !== undefined) gatewayUrl(text);
    return text;
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

export const isSameGateway = (url: string, other: string): boolean => gatewayUrl(url).href === gatewayUrl(other).href;

/** @throws {CliError} if the file is damaged */
export async function readStored(): Promise<Stored | undefined> {
  const file = settingsFile();
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new CliError(`${file} cannot be read: ${error.message}`);
  });
  if (text === undefined) return undefined;
  try {
    const { url, api_key } = JSON.parse(text) as Partial<Stored>;
    if (typeof url === "string" && typeof api_key === "string") return { url, api_key };
  } catch {
    // Reported below.
  }
  throw new CliError(`${file} is damaged: run sandgate login again`);
}

/** Stores the settings for the user only: mode 0600, in a folder of mode 0700 if it has to be created. */
export async function store(stored: Stored): Promise<string> {
  const file = settingsFile();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify(stored, null, 2)}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, file);
  return file;
}

export async function forget(): Promise<string> {
  const file = settingsFile();
  await rm(file, { force: true });
  return file;
}

/** The file in which `login` stores its settings. */
export function settingsFile(): string {
  return join(env.XDG_CONFIG_HOME || join(homedir(), ".config"), "sandgate", "config.json");
}

export function wantsColour(out: { isTTY?: boolean }): boolean {
  return out.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
}

/** A variable of the user's environment, for `--env NAME`. */
export function ownVariable(name: string): string | undefined {
  return env[name];
}
