/** The folder of a backup: complete, or not there. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { formatVersion, verifiedManifest } from "../../../../systemd/backup/manifest.ts";
import { Target } from "../../../../systemd/backup/target.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const never = new AbortController().signal;
const about = {
  format: formatVersion,
  ...{ version: "1", nats_version: "2", created_at: new Date().toISOString(), host: "here" },
  ...{ services: false, snapshots_without_files: [] },
} as const;

test("has its name only when it is complete, also where an empty folder has had it", async () => {
  using folder = temporaryFolder("target");
  const dir = join(folder.path, "backup");
  mkdirSync(dir);
  const target = await Target.make(dir, 0, never);
  await target.add("a/b", [Buffer.from("one "), Buffer.from("two")]);
  assert.deepEqual(readdirSync(dir), []);
  await target.complete(about);
  assert.equal(readFileSync(join(dir, "a/b"), "utf8"), "one two");
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(folder.path), ["backup"]);
  assert.deepEqual(
    (await verifiedManifest(dir)).files.map(({ name, bytes }) => [name, bytes]),
    [["a/b", 7]],
  );
});

test("nothing is left when it is interrupted", async () => {
  using folder = temporaryFolder("target");
  const stop = new AbortController();
  const target = await Target.make(join(folder.path, "backup"), 0, stop.signal);
  const entry = await target.begin("half");
  await entry.write(Buffer.from("half"));
  stop.abort(new Error("Ctrl-C"));
  await assert.rejects(entry.write(Buffer.from("the rest")), /Ctrl-C/);
  await assert.rejects(target.complete(about), /Ctrl-C/);
  await target.discard();
  assert.deepEqual(readdirSync(folder.path), []);
});

test("what is not empty, and a disk without room, is refused before anything is written", async () => {
  using folder = temporaryFolder("target");
  writeFileSync(join(folder.path, "file"), "");
  await assert.rejects(Target.make(folder.path, 0, never), /is not empty/);
  await assert.rejects(Target.make(join(folder.path, "file"), 0, never), /is not a folder/);
  await assert.rejects(Target.make(join(folder.path, "backup"), Number.MAX_SAFE_INTEGER, never), /bytes free/);
  assert.deepEqual(readdirSync(folder.path), ["file"]);
});

test("a link in place of a file is no backup", async () => {
  using folder = temporaryFolder("target");
  const dir = join(folder.path, "backup");
  const target = await Target.make(dir, 0, never);
  await target.complete(about);
  symlinkSync("/etc/hostname", join(dir, "link"));
  const file = join(dir, "manifest.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"files": []', '"files": [{"name": "link", "bytes": 1, "sha256": ""}]'));
  await assert.rejects(verifiedManifest(dir), /link is not a file/);
});
