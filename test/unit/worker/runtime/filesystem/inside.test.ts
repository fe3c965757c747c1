/** Folders made in the files of a sandbox, whose links are hostile. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { makeFolderInside } from "../../../../../worker/runtime/filesystem/inside.ts";

let dir = "";
let root = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "sandgate-inside-"));
  root = join(dir, "root");
  mkdirSync(join(root, "srv"), { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a missing folder is made with those above it, and one that is there stays as it is", () => {
  const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  for (const path of ["/srv/a/b", "/srv/a/b", "//srv/./a/c/", "/"]) makeFolderInside(root, path, owner);
  assert.deepEqual(readdirSync(join(root, "srv/a")).sort(), ["b", "c"]);
  assert.equal(statSync(join(root, "srv/a/b")).mode & 0o777, 0o755);
});

test("links are followed as the sandbox would follow them, never out of it", () => {
  mkdirSync(join(dir, "outside"));
  symlinkSync("/srv", join(root, "absolute"));
  symlinkSync("../../../../srv", join(root, "upwards"));
  symlinkSync(join(dir, "outside"), join(root, "host"));
  makeFolderInside(root, "/absolute/one");
  makeFolderInside(root, "/upwards/two");
  makeFolderInside(root, "/host/three");
  makeFolderInside(root, "/../four");
  assert.deepEqual(readdirSync(join(root, "srv")).sort(), ["one", "two"]);
  assert.deepEqual(readdirSync(join(dir, "outside")), []);
  assert.ok(!existsSync(join(dir, "four")));
});

test("a file or a dangling link in the way is left alone", () => {
  writeFileSync(join(root, "file"), "");
  symlinkSync("/nowhere", join(root, "dangling"));
  makeFolderInside(root, "/file/one");
  makeFolderInside(root, "/dangling/two");
  assert.deepEqual(readdirSync(root).sort(), ["dangling", "file", "srv"]);
});
