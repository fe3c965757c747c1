/** Files of settings: one NAME=value in a line, as services of systemd have them. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError, isSetting, type Named, namesOf, processEnvironment, readSetting, refuseUnknown, secretSettings, settings } from "./config.ts";
import { appDir } from "./programs.mjs";
import type { Environment, Setting } from "./setting-kinds.ts";

interface SettingsLine {
  /** From 1. */
  readonly line: number;
  /** Undefined where the line is not of this form. */
  readonly name?: string;
  readonly value: string;
}

/** The lines that say something; empty ones and those that begin with # or ; do not. */
export function settingsLines(text: string): SettingsLine[] {
  return text.split("\n").flatMap((content, index): SettingsLine[] => {
    if (/^\s*([#;].*)?$/.test(content)) return [];
    const [, name, value = ""] = /^\s*([A-Za-z_]\w*)=(.*?)\s*$/.exec(content) ?? [];
    return [{ line: index + 1, ...(name ? { name } : {}), value: unquoted(value) }];
  });
}

const unquoted = (value: string): string => /^"(.*)"$/.exec(value)?.[1]?.replace(/\\([\\"$`])/g, "$1") ?? /^'(.*)'$/.exec(value)?.[1] ?? value;

/** Where `npm start` looks for settings when no other file is named. */
export const settingsFileIn = (dataDir: string): string => join(dataDir, "sandgate.env");

/** The file of settings that an environment names, and whether it must be there. */
export function settingsFileOf(environment: Environment = processEnvironment()): { readonly path: string; readonly isRequired: boolean } {
  const named = readSetting(settings.config, environment);
  return named ? { path: named, isRequired: true } : { path: settingsFileIn(resolve(appDir, readSetting(settings.dataDir, environment))), isRequired: false };
}

/**
 * Adds the settings of the file to the environment, from which everything that is started later has them.
 *
 * @throws {ConfigError} naming the line, for what is no setting; for a file that others can change, or with a secret that others can read
 */
export function takeSettingsFile(environment: NodeJS.ProcessEnv = processEnvironment()): void {
  const { path, isRequired } = settingsFileOf(environment);
  const found = readSettingsFile(path);
  if (!found && isRequired) throw new ConfigError(`${settings.config.name} names a file that is not there: ${path}`);
  if (!found) return;
  const given = new Map<string, string>();
  for (const { line, name, value } of settingsLines(found.text)) {
    const where = `${path}, line ${line}`;
    if (!name || !isSetting(name)) throw new ConfigError(`${where} must be a setting, SANDGATE_NAME=value`);
    if (given.has(name)) throw new ConfigError(`${where}: ${name} is set twice`);
    checkIn(where, name, value, { isRequired });
    given.set(name, value);
  }
  refuseShownSecrets(path, found.mode, given);
  // The two variables of a secret exclude each other: one in the environment takes precedence over both in the file.
  const isTaken = (name: string): boolean => twinsOf(name).some((twin) => environment[twin] !== undefined);
  for (const [name, value] of given) if (!isTaken(name)) environment[name] = value;
}

function checkIn(where: string, name: string, value: string, { isRequired }: { readonly isRequired: boolean }): void {
  // A file in the data directory cannot say where that is.
  if (name === settings.config.name || (name === settings.dataDir.name && !isRequired)) throw new ConfigError(`${where}: ${name} cannot be set in this file`);
  try {
    refuseUnknown(name);
    const setting = Object.values(settings).find((one) => one.name === name);
    if (setting) readSetting(setting as Named<Setting<unknown>>, { [name]: value });
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(`${where}: ${error.message}`) : error;
  }
}

const othersMay = { change: 0o022, read: 0o077 };

/** @throws {ConfigError} if it cannot be read, or its owner is neither root nor this user */
function readSettingsFile(path: string): { readonly text: string; readonly mode: number } | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const { uid, mode } = fstatSync(file);
      if ((mode & othersMay.change) !== 0 || (uid !== 0 && uid !== process.getuid?.() && uid !== Number(processEnvironment().SUDO_UID ?? -1)))
        throw new ConfigError(`${path} can be changed by others: correct its owner and mode`);
      return { text: readFileSync(file, "utf8"), mode };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new ConfigError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

function refuseShownSecrets(path: string, mode: number, given: ReadonlyMap<string, string>): void {
  const secret = secretSettings.find(({ name }) => given.get(name));
  if (secret && (mode & othersMay.read) !== 0) throw new ConfigError(`${path} has ${secret.name}, and can be read by others: chmod 600 ${path}`);
}

/** The variables of the same setting. */
const twinsOf = (name: string): string[] =>
  Object.values(settings)
    .map(namesOf)
    .find((names) => names.includes(name)) ?? [name];
