/** Versions of packages, compared by dpkg. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../../../../systemd/base/run.ts";
import { versionOf } from "../../../../systemd/build/version.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const isOlder = (one: string, other: string): Promise<boolean> =>
  run(["dpkg", "--compare-versions", one, "lt", other]).then(
    () => true,
    () => false,
  );

test("each commit makes a newer version than the one before, and a release a newer one than the commits of the release before", async () => {
  using folder = temporaryFolder("version");
  const git = (...args: string[]): Promise<string> => run(["git", "-C", folder.path, "-c", "user.name=Test", "-c", "user.email=test@localhost", ...args]);
  await git("init", "--quiet");
  const versions = ["0.1.0"];
  // Also where the hash of a later one comes first, as it does of some of these, and where the count gets a digit more.
  for (let number = 1; number <= 12; number++) {
    await git("commit", "--quiet", "--allow-empty", "--message", `${number}`);
    versions.push(await versionOf(folder.path, "0.1.0"));
  }
  versions.push("0.1.1");
  for (const [index, version] of versions.entries()) {
    const next = versions[index + 1];
    if (next) assert.ok(await isOlder(version, next), `${version} and ${next}`);
  }
  assert.match(versions[12] ?? "", /^0\.1\.0\+git\d{8}\.12\.[0-9a-f]{10}$/);
});

test("without a history it is the plain version", async () => {
  using folder = temporaryFolder("version");
  assert.equal(await versionOf(folder.path, "0.1.0"), "0.1.0");
});
