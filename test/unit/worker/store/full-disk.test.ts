/** The worker's store on a disk without room. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { Facts } from "../../../../worker/store/facts.ts";
import { Store } from "../../../../worker/store/store.ts";
import { SmallFileSystem } from "../../../helpers/small-disk.ts";
import { recordOf } from "../fixtures/records.ts";

const smallDisk = () => SmallFileSystem.make({ name: "store", freeMiB: 8 }, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 });

/** A store with one sandbox, which then has hardly any room left. @returns its folder */
async function nearlyFull(files: SmallFileSystem): Promise<string> {
  const dir = join(files.mounted, "lmdb");
  mkdirSync(dir);
  const first = new Store(dir);
  await first.putSandbox(recordOf("sb_first"));
  await first.close();
  await files.fill(256 * 1024);
  return dir;
}

/** What the program prints that writes to the store in a folder. */
async function crowd(dir: string, ...options: string[]): Promise<string> {
  const program = join(import.meta.dirname, "../fixtures/crowded-store.ts");
  return (await execa(process.execPath, ["--import", "tsx", program, dir, ...options], { stderr: "ignore" })).stdout;
}

test("what is stored before another write finds no room is acknowledged, and no write hangs", async () => {
  await using files = await smallDisk();
  const dir = await nearlyFull(files);
  const stdout = await crowd(dir);
  const told = stdout.split("\n").map((line) => line.split(" "));
  const outcomes = new Set(told.map(([, outcome]) => outcome));
  await files.empty();
  assert.deepEqual([...outcomes].sort(), ["insufficient_storage", "stored"], stdout);
  const after = new Store(dir);
  const found = new Set(after.sandboxes().map(({ id }) => id));
  await after.close();
  for (const [id = "", outcome] of told) if (outcome === "stored") assert.ok(found.has(id), `${id} was acknowledged and is lost`);
});

test("of many who write and remove at the same time until the disk is full and beyond, each is told what became of it", async () => {
  await using files = await smallDisk();
  const dir = join(files.mounted, "lmdb");
  mkdirSync(dir);
  await files.fill(3 * 1024 ** 2);
  assert.equal(await crowd(dir, "--many"), "insufficient_storage,stored");
  await files.empty();
  const after = new Store(dir);
  await after.putSandbox(recordOf("sb_last"));
  assert.ok(after.sandboxes().some(({ id }) => id === "sb_last"));
  await after.close();
});

test("what could not be recorded is not known, and what could not be taken back is taken back when there is room", async () => {
  await using files = await smallDisk();
  const dir = await nearlyFull(files);
  const program = execa(process.execPath, ["--import", "tsx", join(import.meta.dirname, "../fixtures/full-registries.ts"), dir], { stderr: "ignore" });
  const lines: string[] = [];
  for await (const line of program) {
    lines.push(line);
    if (line !== "full") continue;
    await files.empty();
    program.stdin.write("room\n");
  }
  assert.deepEqual(lines, [
    "insufficient_storage",
    "insufficient_storage",
    "full",
    "1 sandboxes, 0 snapshots, no facts",
    "done",
    "2 sandboxes, 0 snapshots, blue",
  ]);
});

test("facts that found no room leave no file behind", async () => {
  await using files = await smallDisk();
  const dir = join(files.mounted, "lmdb");
  const facts = new Facts(dir);
  await facts.put(recordOf("sb_first"));
  await files.fill();
  const large = { ...recordOf("sb_large"), env_vars: { LARGE: "x".repeat(100_000) } };
  await assert.rejects(facts.put(large), { code: "ENOSPC" });
  assert.deepEqual(readdirSync(dir), ["sb_first.json"]);
  await files.empty();
  await facts.put(large);
  assert.deepEqual(facts.of("sb_large")?.env_vars, large.env_vars);
});
