/** The worker's store on a disk without room. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { Store } from "../../../../worker/store/store.ts";
import { SmallFileSystem } from "../../../helpers/small-disk.ts";
import { recordOf } from "../fixtures/records.ts";

test("what is stored before another write finds no room is acknowledged, and no write hangs", async () => {
  await using files = await SmallFileSystem.make({ name: "store", freeMiB: 8 }, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 });
  const dir = join(files.mounted, "lmdb");
  mkdirSync(dir);
  const first = new Store(dir);
  await first.putSandbox(recordOf("sb_first"));
  await first.close();
  await files.fill(256 * 1024);
  const { stdout } = await execa(process.execPath, ["--import", "tsx", join(import.meta.dirname, "../fixtures/crowded-store.ts"), dir], { stderr: "ignore" });
  const told = stdout.split("\n").map((line) => line.split(" "));
  const outcomes = new Set(told.map(([, outcome]) => outcome));
  await files.empty();
  assert.deepEqual([...outcomes].sort(), ["insufficient_storage", "stored"], stdout);
  const after = new Store(dir);
  const found = new Set(after.sandboxes().map(({ id }) => id));
  await after.close();
  for (const [id = "", outcome] of told) if (outcome === "stored") assert.ok(found.has(id), `${id} was acknowledged and is lost`);
});
