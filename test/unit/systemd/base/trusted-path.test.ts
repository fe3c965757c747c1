/** Which paths root may use: those that nobody else can turn elsewhere. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { trustedPath } from "../../../../systemd/base/trusted-path.mjs";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "sandgate-trusted-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a path over links, relative ones as well, ends where the kernel ends", () => {
  mkdirSync(join(folder, "a/b"), { recursive: true });
  symlinkSync("a/../a", join(folder, "one"));
  symlinkSync(join(folder, "one"), join(folder, "two"));
  assert.equal(trustedPath(join(folder, "two/b")), join(folder, "a/b"));
  assert.equal(trustedPath(join(folder, "two/none/yet")), join(folder, "a/none/yet"));
});

test("missing folders are made with the mode that is given, over nothing that is there", () => {
  writeFileSync(join(folder, "file"), "");
  assert.equal(trustedPath(join(folder, "new/er"), { make: 0o700 }), join(folder, "new/er"));
  assert.equal(statSync(join(folder, "new")).mode & 0o777, 0o700);
  assert.throws(() => trustedPath(join(folder, "file/below"), { make: 0o700 }), { code: "ENOTDIR" });
});

test("links in a circle end in an error", () => {
  symlinkSync("two", join(folder, "one"));
  symlinkSync("one", join(folder, "two"));
  assert.throws(() => trustedPath(join(folder, "one")), /too many links/);
});

for (const [what, mode, refused] of [
  ["everybody may write", 0o777, true],
  ["everybody may write, but not replace what is others'", 0o1777, false],
  ["everybody may read", 0o755, false],
] as const) {
  test(`a folder that ${what} is ${refused ? "refused" : "taken"}`, () => {
    const inner = join(folder, "inner");
    mkdirSync(join(inner, "data"), { recursive: true });
    chmodSync(inner, mode);
    if (refused) assert.throws(() => trustedPath(join(inner, "data")), { name: "UntrustedPath", path: inner });
    else assert.equal(trustedPath(join(inner, "data")), join(inner, "data"));
  });
}

const asRoot = { skip: process.geteuid?.() === 0 ? false : "only root can give files away" };
test("a folder, a file, a link of another user, and a folder that a group may write, are refused and named", asRoot, () => {
  const [theirs, file, link, groups] = ["theirs", "file", "link", "groups"].map((name) => join(folder, name)) as [string, string, string, string];
  mkdirSync(theirs);
  writeFileSync(file, "");
  symlinkSync("/etc", link);
  mkdirSync(groups, { mode: 0o770 });
  chownSync(theirs, 65_534, 0);
  chownSync(file, 65_534, 0);
  lchownSync(link, 65_534, 0);
  chownSync(groups, 0, 65_534);
  chmodSync(groups, 0o770);
  for (const path of [theirs, file, link, groups]) assert.throws(() => trustedPath(join(path, "passwd")), { name: "UntrustedPath", path });
});
