/** The installation on this machine, as its operator reaches it. */
import { lstatSync, type Stats } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { loadConfig, operatorKeyFileOf, operatorSocketOf } from "../../config.ts";
import { CliError, messageOf } from "../failures.ts";

const dataDir = (): string => resolve(loadConfig().dataDir);

/** The key that the installation here keeps. @throws {CliError} when there is none, or it is not for us */
export const ownKey = (): Promise<string> => readKey(operatorKeyFileOf(dataDir()));

/** The API key that a file holds. @throws {CliError} */
export async function readKey(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new CliError(`no API key: ${messageOf(error)}\nGive one with --key-file or SANDGATE_API_KEY, or run this as the user who runs npm start.`);
  });
  const key = text.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new CliError(`${path} does not hold an API key`);
  return key;
}

/**
 * The socket of the gateway here. Anybody may have a port that the gateway has just left, but only the gateway's user can
 * listen in this folder. Root becomes that user for the connection, so that a link in the folder leads no further than
 * the gateway could go itself.
 *
 * @throws {CliError} when others could listen there, too.
 */
export function operatorSocket(): string {
  const path = operatorSocketOf(dataDir());
  const folder = folderOf(path);
  if (!folder) return path;
  const own = process.getuid?.() ?? folder.uid;
  if (!folder.isDirectory() || (folder.mode & 0o022) !== 0 || (own !== 0 && own !== folder.uid)) {
    throw new CliError(`others than you can listen in ${dirname(path)}: no key is sent there`);
  }
  if (own === 0) become(folder);
  return path;
}

/** Nothing where there is none or it cannot be seen: the connection fails for the same reason. */
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
