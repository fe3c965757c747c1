/** How long an archive of an image's files is said to be, before it is made. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { archiveBytes } from "../../../../systemd/helper/memory/travel.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

test("an archive is as long as was said, wherever its last record ends", () => {
  using folder = temporaryFolder("archive");
  const names = ["pages-1.img", "core-1.img"];
  for (const name of names) writeFileSync(join(folder.path, name), "x");
  for (let size = 0; size < 25 * 512; size += 256) {
    truncateSync(join(folder.path, "pages-1.img"), size);
    const made = execFileSync("tar", ["--create", "--format=gnu", `--directory=${folder.path}`, "--", ...names]);
    assert.equal(archiveBytes([size, 1]), made.length, String(size));
  }
});
