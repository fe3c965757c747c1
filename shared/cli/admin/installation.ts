/** The operator's access to the installation on this machine. */
import { lstatSync, type Stats } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { loadConfig, operatorKeyFileOf, operatorSocketOf } from "../../config.ts";
import { settingsFileOf, takeSettingsFile } from "../../settings-file.ts";
import { CliError, messageOf } from "../failures.ts";

/** As the settings say, those of a file included that the environment names. */
function dataDir(): string {
  if (settingsFileOf().isRequired) takeSettingsFile();
  return resolve(loadConfig().dataDir);
}

/** The API key that the local installation stores. @throws {CliError} if there is none, or it is not readable */
export const ownKey = (): Promise<string> => readKey(operatorKeyFileOf(dataDir()));

/** Reads an API key from a file. @throws {CliError} */
export async function readKey(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new CliError(`no API key: ${messageOf(error)}\nGive one with --key-file or SANDGATE_API_KEY, or run this as the user who runs npm start.`);
  });
  const key = text.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new CliError(`${path} does not hold an API key`);
  return key;
}

/**
 * The socket of the local gateway. Any user can listen on a port that the gateway has just left, but only the gateway's user
 * can listen in this folder. Root switches to that user for the connection, so that a link in the folder leads no further
 * than the gateway itself could go.
 *
 * @throws {CliError} if other users can also listen there
 */
export function operatorSocket(): string {
  const path = operatorSocketOf(dataDir());
  const folder = folderOf(path);
  if (!folder) return path;
  const own = process.getuid?.() ?? folder.uid;
  if (!folder.isDirectory() || (folder.mode & 0o022) !== 0 || (own !== 0 && own !== folder.uid)) {
    throw new CliError(`other users can listen in ${dirname(path)}, so no key is sent there`);
  }
  if (own === 0) become(folder);
  return path;
}

/** Undefined if the folder does not exist or is not visible; connecting then fails for the same reason. */
function folderOf(path: string): Stats | undefined {
  try {
    return lstatSync(dirname(path));
  } catch {
    return undefined;
  }
}

function become({ uid, gid }: Stats): void {
  process.setgroups?.([gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
}
