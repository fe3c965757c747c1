/** What the pages bring along from packages works under their policy, and comes only where it is needed. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type Bundle, bundle } from "../../../../gateway/dashboard/bundle.ts";
import { loadDashboard } from "../../../../gateway/dashboard/files.ts";

const { assets } = await loadDashboard();
const bodies = [...assets.values()].map(({ body }) => body);
const emulators = bodies.filter((body) => body.includes("xterm-rows") && body.includes("adoptedStyleSheets"));

/** What becomes of a folder with these files and the entry points `main.ts` and `other.ts`. */
async function bundled(files: Readonly<Record<string, string>>): Promise<Bundle> {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-bundle-"));
  try {
    for (const [name, text] of Object.entries({ "main.ts": "", "other.ts": "", ...files })) {
      await mkdir(dirname(join(dir, name)), { recursive: true });
      await writeFile(join(dir, name), text);
    }
    return await bundle(dir, ["main.ts", "other.ts"]);
  } finally {
    await rm(dir, { recursive: true });
  }
}

function textOf({ files, entries }: Bundle, entryPoint: string): string {
  return files.get(entries.get(entryPoint)?.name ?? "") ?? assert.fail(`nothing became of ${entryPoint}`);
}

test("the terminal emulator makes no style elements and no style attributes, and runs no text", () => {
  assert.equal(emulators.length, 1);
  assert.doesNotMatch(emulators.join(), /createElement\(["'`]style["'`]\)|setAttribute\(["'`]style["'`]|\beval\(|new Function\(|innerHTML|document\.write/);
});

test("style sheets take in all that they need", () => {
  const sheets = [...assets].filter(([name]) => name.endsWith(".css")).map(([, { body }]) => body);
  assert.equal(sheets.filter((body) => /\.xterm-rows|\.xterm-viewport/.test(body)).length, 1);
  for (const body of sheets) assert.doesNotMatch(body, /@import|url\(/);
});

test("the licence of what is served goes along", () => {
  for (const body of [...emulators, ...bodies.filter((text) => text.includes(".xterm-viewport{"))]) assert.match(body, /@license MIT|Copyright/);
});

test("what two scripts need is there once, and what one imports while it runs is a file of its own", async () => {
  const made = await bundled({
    "main.ts": 'import { shared } from "./shared.ts";\nconsole.log(shared, await import("./later.ts"));',
    "other.ts": 'import { shared } from "./shared.ts";\nconsole.log(shared);',
    "shared.ts": 'export const shared: string = Math.random() > 2 ? "" : "both need this";',
    "later.ts": 'export const later = "only later";',
  });
  assert.equal([...made.files.values()].filter((text) => text.includes("both need this")).length, 1);
  assert.equal([...made.files.values()].filter((text) => text.includes("only later")).length, 1);
  assert.doesNotMatch(textOf(made, "main.ts"), /both need this|only later/);
  const imports = made.entries.get("main.ts")?.imports ?? [];
  assert.deepEqual(
    imports.map((name) => made.files.get(name)?.includes("both need this")),
    [true],
  );
});

test("a name changes with what is in the file, and with what is in the files that it imports", async () => {
  const main = 'import { value } from "./folder/value.ts";\nconsole.log(value);';
  const other = 'import { value } from "./folder/value.ts";\nconsole.log(value + 1);';
  const nameWith = async (value: number): Promise<string | undefined> => {
    const made = await bundled({ "main.ts": main, "other.ts": other, "folder/value.ts": `export const value = Date.now() + ${value};` });
    assert.equal(made.files.size, 3);
    return made.entries.get("main.ts")?.name;
  };
  const name = await nameWith(1);
  assert.match(name ?? "", /^main-[A-Z0-9]{8}\.js$/);
  // The folder that it is made in is another one each time.
  assert.equal(await nameWith(1), name);
  assert.notEqual(await nameWith(2), name);
});

test("what is missing is an error of the build", async () => {
  await assert.rejects(bundled({ "main.ts": 'export { nothing } from "./there-is-no-such-file.ts";\n' }), /there-is-no-such-file/);
});
