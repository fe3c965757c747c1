/** Files in the folder of the worker, which only the worker's user reads and writes: root could be led elsewhere in there. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { asAccount } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import type { Account, Instance } from "../base/instance.ts";
import { searchPath } from "../base/search-path.mjs";
import { nodeCommand } from "../supervisor/node-parts.ts";
import { recordsDir } from "./kept.ts";

const environment = { PATH: searchPath };
const write = 'umask 077; mkdir -p "$(dirname "$1")" && cat > "$1" && sync "$1"';

/** A consistent copy of the records, which the worker may be changing. @throws {StartFailure} */
export async function* copiedRecords(instance: Instance): AsyncGenerator<Uint8Array> {
  const { account, paths } = instance;
  const [file = "", ...args] = asAccount(account, [...nodeCommand(instance, "worker/store/copy.ts"), recordsDir(instance)]);
  // It is among the worker's programs by its user, and ends with its reader.
  const program = spawn(file, args, { env: environment, cwd: paths.app, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(program, "close") as Promise<[number | null]>;
  const said = text(program.stderr);
  try {
    yield* program.stdout as AsyncIterable<Uint8Array>;
  } finally {
    program.stdout.destroy();
    await ended;
  }
  const [code] = await ended;
  if (code !== 0) throw new StartFailure(`The records of the worker could not be copied: ${(await said).trim().split("\n").slice(-5).join("\n")}`);
}

/** Writes a file in the worker's folder. @param content the path of a file that has it, or its text @throws {StartFailure} */
export async function writeAsWorker(account: Account, path: string, content: { readonly file: string } | { readonly text: string }): Promise<void> {
  const source = "file" in content ? await open(content.file) : undefined;
  try {
    const [file = "", ...args] = asAccount(account, ["sh", "-c", write, "sh", path]);
    const program = spawn(file, args, { env: environment, cwd: "/", stdio: [source?.fd ?? "pipe", "ignore", "pipe"] });
    if ("text" in content) program.stdin?.end(content.text);
    const [said, [code]] = await Promise.all([text(program.stderr as NonNullable<typeof program.stderr>), once(program, "close") as Promise<[number | null]>]);
    if (code !== 0) throw new StartFailure(`${path} could not be written: ${said.trim()}`);
  } finally {
    await source?.close();
  }
}
