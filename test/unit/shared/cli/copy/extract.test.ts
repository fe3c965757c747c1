/** Unpacking archives that mean harm: nothing gets out of the folder. */
import assert from "node:assert/strict";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { type Header, pack } from "tar-stream";
import { extractTo } from "../../../../../shared/cli/copy/extract.ts";

let around: string;
let folder: string;
beforeEach(() => {
  around = realpathSync(mkdtempSync(join(tmpdir(), "sandgate-extract-")));
  folder = join(around, "folder");
  mkdirSync(folder);
  writeFileSync(join(around, "secret"), "untouched");
});
afterEach(() => {
  assert.equal(readFileSync(join(around, "secret"), "utf8"), "untouched");
  assert.deepEqual(readdirSync(around).sort(), ["folder", "secret"]);
  rmSync(around, { recursive: true });
});

type Entry = Partial<Header> & { name: string; content?: string };

function archive(...entries: Entry[]): AsyncIterable<Uint8Array> {
  const stream = pack();
  for (const { content, ...header } of entries) stream.entry(header as Header, content ?? "");
  stream.finalize();
  return stream as AsyncIterable<Uint8Array>;
}

test("names that lead out are refused", async () => {
  for (const name of ["../secret", "a/../../secret", "/etc/secret", ".."])
    await assert.rejects(extractTo(folder, archive({ name, content: "evil" })), /the archive is refused/);
});

test("a path that is too long for this system is an error that says so and what helps", async () => {
  const long = archive({ name: "first", content: "first" }, { name: `${"deepdeepdeep/".repeat(3_000)}end`, content: "end" });
  await assert.rejects(
    extractTo(folder, long),
    (error: Error) => error.name === "CliError" && error.message.length < 200 && /too long.*copied in part/.test(error.message),
  );
  assert.deepEqual(readdirSync(folder), ["first"]);
});

test("nothing is written through a link, neither of the archive nor one that was there", async () => {
  symlinkSync(around, join(folder, "old"));
  const evil = archive(
    { name: "inner", type: "symlink", linkname: "." },
    { name: "inner/through", content: "evil" },
    { name: "old/secret", content: "evil" },
    { name: "old/sub", type: "directory" },
    { name: "good", content: "good" },
  );
  assert.deepEqual(await extractTo(folder, evil), { files: 2, bytes: 4, skipped: 3 });
  assert.ok(!existsSync(join(folder, "through")));
  assert.equal(readFileSync(join(folder, "good"), "utf8"), "good");
});

test("a file takes the place of a link and does not follow it", async () => {
  symlinkSync(join(around, "secret"), join(folder, "file"));
  await extractTo(folder, archive({ name: "file", content: "new" }));
  assert.ok(lstatSync(join(folder, "file")).isFile());
});

test("links that lead out, by hard links too, and what is no file are left out", async () => {
  symlinkSync("../secret", join(folder, "way"));
  const evil = archive(
    { name: "a", type: "symlink", linkname: "../secret" },
    { name: "b", type: "symlink", linkname: "/etc/passwd" },
    { name: "c", type: "link", linkname: "way" },
    { name: "d", type: "fifo" },
    { name: "e", type: "character-device" },
  );
  assert.deepEqual(await extractTo(folder, evil), { files: 0, bytes: 0, skipped: 5 });
  await assert.rejects(extractTo(folder, archive({ name: "f", type: "link", linkname: "../secret" })), /the archive is refused/);
  assert.deepEqual(readdirSync(folder), ["way"]);
});

test("modes lose what is dangerous, and a folder that forbids writing still gets its files", async () => {
  await extractTo(folder, archive({ name: "sub", type: "directory", mode: 0o555 }, { name: "sub/tool", mode: 0o4755, content: "x" }));
  assert.equal(lstatSync(join(folder, "sub/tool")).mode & 0o7777, 0o755);
  assert.equal(lstatSync(join(folder, "sub")).mode & 0o777, 0o555);
});

test("an archive that breaks off is an error", async () => {
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    for await (const bytes of archive({ name: "a", content: "x".repeat(5_000) })) {
      yield bytes.subarray(0, 1_000);
      throw new Error("cut");
    }
  };
  await assert.rejects(extractTo(folder, broken()));
});
