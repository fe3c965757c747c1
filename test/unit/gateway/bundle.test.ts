/** What the pages bring along from packages works under their policy. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { stop } from "esbuild";
import { bundle } from "../../../gateway/dashboard/bundle.ts";

after(() => stop());

const bundled = (name: string): string => `gateway/dashboard/app/bundled/${name}`;

test("the terminal emulator makes no style elements and no style attributes, and runs no text", async () => {
  const script = await bundle(bundled("xterm.ts"));
  assert.doesNotMatch(script, /createElement\(["'`]style["'`]\)|setAttribute\(["'`]style["'`]|\beval\(|new Function\(|innerHTML|document\.write/);
  assert.match(script, /adoptedStyleSheets/);
});

test("a bundle takes in all that it needs", async () => {
  for (const name of ["xterm.ts", "sessions.ts"]) assert.doesNotMatch(await bundle(bundled(name)), /(^|[;}\n])import\b(?!\()|\bfrom"/);
  const styles = await bundle(bundled("xterm.css"));
  assert.match(styles, /\.xterm-rows|\.xterm-viewport/);
  assert.doesNotMatch(styles, /@import|url\(/);
});

test("the licence of what is served goes along", async () => {
  assert.match(await bundle(bundled("xterm.css")), /@license MIT|Copyright/);
});

test("what is missing is an error at the start", async () => {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-bundle-"));
  try {
    await writeFile(join(dir, "main.ts"), 'export { nothing } from "./there-is-no-such-file.ts";\n');
    await assert.rejects(bundle(join(dir, "main.ts")), /there-is-no-such-file/);
  } finally {
    await rm(dir, { recursive: true });
  }
});
