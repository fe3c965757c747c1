/** The log of a part under `npm start`. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LogFile } from "../../../../systemd/supervisor/log-file.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const MiB = 1024 * 1024;

test("a log takes no more than two files of 32 MiB, whatever is written, and ends with what was written last", () => {
  using folder = temporaryFolder("log");
  const log = new LogFile(join(folder.path, "part.log"));
  const line = "x".repeat(MiB);
  for (let count = 0; count < 100; count++) log.write(`${count} ${line}`);
  log.write("the last one");
  log.close();
  assert.deepEqual(readdirSync(folder.path).sort(), ["part.log", "part.log.1"]);
  for (const name of readdirSync(folder.path)) assert.ok(statSync(join(folder.path, name)).size < 34 * MiB, name);
  assert.ok(readFileSync(log.path, "utf8").endsWith("\nthe last one\n"));
});

test("what an earlier process has written counts", () => {
  using folder = temporaryFolder("log");
  const path = join(folder.path, "part.log");
  for (let start = 0; start < 40; start++) {
    const log = new LogFile(path);
    for (let count = 0; count < 2; count++) log.write("x".repeat(MiB));
    log.close();
  }
  assert.ok(statSync(path).size + statSync(`${path}.1`).size < 68 * MiB);
});
