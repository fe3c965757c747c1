/**
 * The settings of the product: read from the environment once, checked and frozen.
 * No other file reads `process.env` (the start-up scripts in `systemd/` only pass it on as a whole).
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Environment, Setting } from "./setting-kinds.ts";
import { table } from "./settings.ts";
import { nearest } from "./util/nearest.ts";

export type Named<S> = S & { /** Of the variable. */ readonly name: string };

/** The settings with the names of their variables. */
export const settings = Object.fromEntries(Object.entries(table).map(([key, setting]) => [key, { ...setting, name: variableOf(key, setting) }])) as {
  readonly [K in keyof typeof table]: Named<(typeof table)[K]>;
};

type ValueOf<S> = S extends { parse(text: string): infer T | undefined } ? Exclude<T, undefined> : never;

/** The checked settings of this process. */
export type Config = { readonly [K in keyof typeof table]: ValueOf<(typeof table)[K]> };

/** A setting that cannot be used. The message names it and the values it takes. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/** Variables for people who call the API. The product's own processes ignore them and must not see the key. */
export const clientVariables: ReadonlySet<string> = new Set(["SANDGATE_URL", "SANDGATE_API_KEY"]);

/**
 * Reads and checks all settings.
 *
 * @throws {ConfigError} when the value of a setting is invalid, or an unknown `SANDGATE_*` name is set.
 */
export function loadConfig(environment: Environment = process.env): Config {
  for (const name of Object.keys(environment)) if (name.startsWith("SANDGATE_") && !clientVariables.has(name)) refuseUnknown(name);
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting as Named<Setting<unknown>>, environment)]);
  const config = Object.fromEntries(entries) as Config;
  return Object.freeze({ ...config, storageDir: config.storageDir || join(config.dataDir, "containers") });
}

/** @throws {ConfigError} for what is no setting's name, with the setting that may have been meant */
export function refuseUnknown(name: string): void {
  const known = Object.values(settings).flatMap(namesOf);
  if (known.includes(name)) return;
  const meant = nearest(name, known);
  throw new ConfigError(`${name} is not a setting of Sandgate${meant ? `; did you mean ${meant}?` : ";"} npm start -- --help lists them`);
}

/**
 * Puts the worker's id into the environment of programs started from now on, so that they can be told from those of other
 * workers. They get no other setting, because some are secrets.
 */
export function markPrograms(workerId: string): void {
  for (const name of [...variables, credentialsVariable]) delete process.env[name];
  process.env[settings.workerId.name] = workerId;
}

/** Where systemd has put the credentials of this service. */
const credentialsVariable = "CREDENTIALS_DIRECTORY";

/** The secret settings, by their keys in the configuration. */
export const secretSettings = Object.entries(settings).flatMap(([key, setting]) =>
  "secret" in setting ? [{ key: key as keyof Config, name: setting.name }] : [],
);

/** The variables that name files. */
export const fileVariables: readonly string[] = [
  ...secretSettings.map(({ name }) => fileVariable(name)),
  ...Object.values(settings).flatMap((setting) => ("file" in setting ? [setting.name] : [])),
];

/** Removes the secrets from the environment, so that programs started from now on do not inherit them. */
export function forgetSecrets(): void {
  for (const name of [...secretSettings.flatMap(({ name }) => [name, fileVariable(name)]), ...clientVariables]) delete process.env[name];
}

const variables: ReadonlySet<string> = new Set(Object.values(settings).flatMap(namesOf));

/** Whether a variable is a setting, or was meant as one. */
export const isSetting = (name: string): boolean => name.startsWith("SANDGATE_") || variables.has(name);

const serviceVariables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] as const;

/** What systemd has told this service, taken out of the environment: programs that it starts must not speak for it. */
export function takeServiceVariables(): { readonly [N in (typeof serviceVariables)[number]]?: string } {
  const found = Object.fromEntries(serviceVariables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
  for (const name of serviceVariables) delete process.env[name];
  return found;
}

/** The file in which the installation with this data directory keeps the API key of its first account. */
export function operatorKeyFileOf(dataDir: string): string {
  return join(dataDir, "api-key");
}

/** The Unix socket on which the gateway with this data directory listens for the machine's operator. */
export function operatorSocketOf(dataDir: string): string {
  return join(dataDir, "gateway", "operator.sock");
}

/** A file that says, to the worker with this data directory, of when the backup is that its records were restored from. */
export function restoredMarkOf(dataDir: string): string {
  return join(dataDir, "worker", "restored");
}

const proxyVariables = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/** The HTTP proxies of this process, by the names of their variables. */
export function proxies(environment: Environment = process.env): ReadonlyMap<string, URL> {
  const given = proxyVariables.map((name) => [name, environment[name] ?? ""] as const);
  // A value without a scheme means HTTP.
  const urls = given.map(([name, text]) => [name, text.includes("://") ? text : `http://${text}`, text] as const);
  return new Map(urls.flatMap(([name, url, text]) => (text && URL.canParse(url) ? [[name, new URL(url)] as const] : [])));
}

function variableOf(key: string, { variable }: Pick<Setting<unknown>, "variable">): string {
  return variable ?? `SANDGATE_${key.replaceAll(/[A-Z]/g, "_$&").toUpperCase()}`;
}

/** The environment of this process, to be changed by who reads further settings. */
export const processEnvironment = (): NodeJS.ProcessEnv => process.env;

/** The variables that can provide a setting. */
export function namesOf({ name, secret }: Named<Pick<Setting<unknown>, "secret">>): string[] {
  return secret ? [name, fileVariable(name)] : [name];
}

/**
 * The variable with the path of a secret's file. Files are safer: any process of the same user can read an environment. In a
 * service of systemd, a relative path names one of its credentials.
 */
export function fileVariable(name: string): string {
  return `${name}_FILE`;
}

function readSecret({ name }: Named<object>, environment: Environment): string | undefined {
  const variable = fileVariable(name);
  const file = environment[variable];
  if (!file) return undefined;
  if (environment[name]) throw new ConfigError(`${name} and ${variable} are both set; leave one of them out`);
  try {
    return readFileSync(resolve(environment[credentialsVariable] ?? "", file), "utf8");
  } catch (error) {
    throw new ConfigError(`${variable} cannot be read: ${(error as Error).message}`);
  }
}

/** The value of one setting. @throws {ConfigError} if it is invalid */
export function readSetting<T>(setting: Named<Setting<T>>, environment: Environment): T {
  const value = (setting.secret ? readSecret(setting, environment) : undefined) ?? environment[setting.name];
  if (value === undefined || value === "") {
    return typeof setting.fallback === "function" ? (setting.fallback as (e: Environment) => T)(environment) : setting.fallback;
  }
  const parsed = setting.parse(value.trim());
  if (parsed === undefined) throw new ConfigError(`${setting.name} must be ${setting.takes}`);
  return parsed;
}

/** The settings as rows for `--help` and the README: name, accepted values, default, meaning. */
export function describeSettings(environment: Environment = process.env): { name: string; takes: string; fallback: string; about: string }[] {
  return Object.values(settings).map((setting) => ({
    name: setting.name,
    takes: setting.takes,
    fallback: String(typeof setting.fallback === "function" ? setting.fallback(environment) : setting.fallback),
    about: "secret" in setting ? `${setting.about} ${fileVariable(setting.name)} names a file that holds it instead.` : setting.about,
  }));
}
