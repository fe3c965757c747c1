/** The code keeps to its own rules. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { execa } from "execa";

const sources = globSync("{gateway,worker,shared,systemd,bench}/**/*.{ts,mjs}");

test("all types check", async () => {
  for (const project of [".", "gateway/dashboard/app"]) {
    // Each thread of its own would work out most types anew, while other tests need the processors.
    const { exitCode, stdout } = await execa("node_modules/.bin/tsc", ["--singleThreaded", "-p", project], { reject: false });
    assert.equal(exitCode, 0, stdout);
  }
});

test("the linter and the formatter find nothing", async () => {
  const { exitCode, stdout, stderr } = await execa("node_modules/.bin/biome", ["check", "."], { reject: false });
  assert.equal(exitCode, 0, stdout + stderr);
});

test("only the settings and the start-up scripts read the environment", () => {
  for (const file of sources) {
    if (file === "shared/config.ts" || file.startsWith("systemd/")) continue;
    assert.doesNotMatch(readFileSync(file, "utf8"), /(?<![.\w])process\.env/, `${file} reads the environment`);
  }
});

test("subjects and buckets are spelled in one place only", () => {
  for (const file of sources) {
    if (file === "shared/bus/subjects.ts") continue;
    assert.doesNotMatch(readFileSync(file, "utf8"), /["'`]sandgate[._](worker|stream|presence|accounts|keys|sandboxes)\b(?!=)/, `${file} spells a subject`);
  }
});

test("only the helper of worker/runtime starts programs, beside the start-up scripts, builds, benches and the person's own command line", () => {
  const others = ["worker/runtime/process/program.ts", "shared/cli/keyboard.ts", "shared/client/build.mjs"];
  for (const file of sources) {
    if (others.includes(file) || /^(systemd|bench)\//.test(file)) continue;
    assert.doesNotMatch(readFileSync(file, "utf8"), /from "(node:child_process|execa)"|import\("(node:child_process|execa)"\)/, `${file} starts programs`);
  }
});
