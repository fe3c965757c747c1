/** `npm run admin -- …`: commands of the operator, by way of the operator API. */
import { lstatSync, type Stats } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError, loadConfig, operatorSocketOf } from "../../shared/config.ts";
import { messageOf } from "../failure.ts";
import { pathsOf } from "../instance.ts";
import { parseRequest } from "./arguments.ts";
import { AdminClient, type Place } from "./client.ts";
import type { Values } from "./command.ts";
import { confirm } from "./confirm.ts";
import { AdminError, UsageError } from "./failures.ts";
import { helpText } from "./help.ts";
import { Output } from "./output.ts";

const exitCodes = { done: 0, failed: 1, usage: 2 };

async function main(args: readonly string[]): Promise<void> {
  const request = parseRequest(args);
  if (request === "help") return void console.log(helpText());
  const { command, operands, values } = request;
  const key = await apiKey(values);
  const client = new AdminClient(gateway(values), key);
  const out = new Output(process.stdout, values.json ?? false);
  await command.run({ client, out, values, operands, confirm: (question) => confirm(question, values.yes ?? false) });
}

/** The gateway that is meant: at the address that was given, else the one that `npm start` runs here. */
function gateway({ url }: Values): Place {
  const given = url || process.env.SANDGATE_URL;
  if (!given) return { url: new URL("http://localhost"), socketPath: operatorSocket(pathsOf(loadConfig()).data) };
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) throw new UsageError(`${given} is not the address of a gateway, such as http://127.0.0.1:8080`);
  return { url: parsed };
}

/**
 * The socket of the gateway here. Anybody may have a port that the gateway has just left, but only the gateway's user can
 * listen in this folder. Root becomes that user for the connection, so that a link in the folder leads no further than
 * the gateway could go itself.
 *
 * @throws {AdminError} when others could listen there, too.
 */
function operatorSocket(dataDir: string): string {
  const path = operatorSocketOf(dataDir);
  const folder = folderOf(path);
  if (!folder) return path;
  const own = process.getuid?.() ?? folder.uid;
  if (!folder.isDirectory() || (folder.mode & 0o022) !== 0 || (own !== 0 && own !== folder.uid)) {
    throw new AdminError(`others than you can listen in ${dirname(path)}: no key is sent there`);
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

/** The operator's key: from a file or the environment, else the one that the installation here keeps. */
async function apiKey({ "key-file": file }: Values): Promise<string> {
  const given = process.env.SANDGATE_API_KEY?.trim();
  if (given && file === undefined) return given;
  const path = file ?? pathsOf(loadConfig()).apiKey;
  try {
    const key = (await readFile(path, "utf8")).trim();
    if (/^[\x21-\x7e]+$/.test(key)) return key;
  } catch (error) {
    throw new AdminError(`no API key: ${messageOf(error)}\nGive one with --key-file or SANDGATE_API_KEY, or run this as the user who runs npm start.`);
  }
  throw new AdminError(`${path} does not hold an API key`);
}

// Such as `| head`: nobody reads on.
process.stdout.on("error", () => process.exit(exitCodes.done));
try {
  await main(process.argv.slice(2));
} catch (error) {
  const isUsage = error instanceof UsageError || error instanceof ConfigError;
  const text = isUsage || error instanceof AdminError ? error.message : String(error instanceof Error ? error.stack : error);
  console.error(`sandgate-admin: ${text}${error instanceof UsageError ? "\nsandgate-admin help lists what there is." : ""}`);
  process.exitCode = isUsage ? exitCodes.usage : exitCodes.failed;
}
