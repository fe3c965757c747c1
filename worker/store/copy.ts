/**
 * A program that writes a copy of a worker's records to its standard output, consistent also while the worker changes them. It
 * runs as the worker's user, the only one that opens the files of the worker.
 */
import { createReadStream, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { open } from "lmdb";
import { databasesMax, dataFile } from "./store.ts";

const [dir = ""] = process.argv.slice(2);
const copy = `${dir}.copy`;
if (!existsSync(join(dir, dataFile))) throw new Error(`there are no records in ${dir}`);
// One that was killed has left its copy.
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy, { mode: 0o700 });
try {
  const records = open({ path: dir, maxDbs: databasesMax, readOnly: true });
  // Without the pages that are free.
  await records.backup(copy, true);
  await records.close();
  await pipeline(createReadStream(join(copy, dataFile)), process.stdout);
} finally {
  rmSync(copy, { recursive: true, force: true });
}
