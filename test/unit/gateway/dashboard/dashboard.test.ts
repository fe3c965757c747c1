/** The files of the web pages, as the gateway has them in memory. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bytes, count, duration, plural, relativeTime, shortId } from "../../../../gateway/dashboard/app/format.ts";
import { type BuiltDashboard, buildDashboard } from "../../../../gateway/dashboard/build.ts";
import { loadDashboard } from "../../../../gateway/dashboard/files.ts";

const { page, favicon, assets } = await loadDashboard();

test("all that the page loads and all that its modules import is there", () => {
  const loaded = [...page.body.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)].map(([, path = ""]) => path);
  assert.ok(loaded.length > 3 && loaded.length < 10, loaded.join());
  for (const path of loaded) assert.ok(assets.has(path), path);
  for (const [name, { body }] of assets) {
    if (!name.endsWith(".js")) continue;
    for (const [, path = ""] of body.matchAll(/(?:from|import\(|import)"\.\/([^"]+)"/g)) assert.ok(assets.has(path), `${name} imports ${path}`);
  }
});

test("the page asks for what its script imports at once, and for nothing that only the terminal needs", () => {
  const [main = ""] = /main-\w+\.js/.exec(page.body) ?? [];
  const imported = [...(assets.get(main)?.body ?? "").matchAll(/(?:from|import)"\.\/([^"]+)"/g)].map(([, path]) => path);
  const preloaded = [...page.body.matchAll(/<link rel="modulepreload" href="\/assets\/([^"]+)"/g)].map(([, path]) => path);
  assert.deepEqual(preloaded.sort(), imported.sort());
  for (const path of [main, ...preloaded]) assert.doesNotMatch(assets.get(path ?? "")?.body ?? "", /xterm-rows/);
});

test("scripts are served as JavaScript without types, and no other files but style sheets are", () => {
  for (const [name, { contentType, body }] of assets) {
    assert.match(name, /^[\w-]+-[A-Z0-9]{8}\.(js|css)$/);
    assert.equal(contentType, name.endsWith(".js") ? "text/javascript; charset=utf-8" : "text/css; charset=utf-8");
    if (name.startsWith("main-") && name.endsWith(".js")) assert.doesNotMatch(body, /import type|interface |: HTMLElement/);
  }
  assert.equal(page.contentType, "text/html; charset=utf-8");
  assert.equal(favicon.contentType, "image/svg+xml; charset=utf-8");
});

/** What becomes of a page with this script. */
async function made(files: Readonly<Record<string, string>>): Promise<BuiltDashboard> {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-pages-"));
  try {
    for (const [name, text] of Object.entries({ "favicon.svg": "<svg/>", ...files })) await writeFile(join(dir, name), text);
    return await buildDashboard(dir, ["main.ts"]);
  } finally {
    await rm(dir, { recursive: true });
  }
}

const html = '<!doctype html><script type="module" src="/assets/main.ts"></script>';

test("the page and what it loads stay the same while their sources do", async () => {
  const [first, second, third] = [
    await made({ "index.html": html, "main.ts": "console.log(1 as number);" }),
    await made({ "index.html": html, "main.ts": "console.log(1 as number);" }),
    await made({ "index.html": html, "main.ts": "console.log(2 as number);" }),
  ];
  assert.deepEqual(first.files, second.files);
  assert.notEqual(first.files.get("index.html"), third.files.get("index.html"));
  assert.match(first.files.get("index.html") ?? "", /<script type="module" src="\/assets\/main-\w+\.js"><\/script>/);
});

test("every file has a tag that says what is in it", () => {
  const all = [page, favicon, ...assets.values()];
  for (const { etag } of all) assert.match(etag, /^"[\w-]+"$/);
  assert.equal(new Set(all.map(({ etag }) => etag)).size, new Set(all.map(({ body }) => body)).size);
});

test("a page that would not work is an error of the build", async () => {
  await assert.rejects(made({ "main.ts": "" }), /index\.html/);
  await assert.rejects(made({ "index.html": html }), /main\.ts/);
  await assert.rejects(made({ "index.html": html, "main.ts": "export const = ;\n" }), /main\.ts/);
  await assert.rejects(made({ "index.html": html.replace("main", "mian"), "main.ts": "" }), /no entry point mian\.ts/);
});

test("nothing in the pages makes HTML out of text", () => {
  for (const [name, { body }] of assets) {
    if (name.endsWith(".js")) assert.doesNotMatch(body, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser|setHTML/, name);
  }
});

test("numbers and times are shown in few words", () => {
  const now = Date.parse("2026-01-31T12:00:00.000Z");
  const ago = (seconds: number): string => relativeTime(new Date(now - seconds * 1_000).toISOString(), now);
  assert.deepEqual([0, 45, 60, 3_599, 7_200, 86_400 * 3].map(ago), ["just now", "45s ago", "1m ago", "59m ago", "2h ago", "3d ago"]);
  assert.deepEqual([0, 0.4, 1_023, 1_024, 1_536, 5 * 1024 ** 3, 2_000 * 1024 ** 4].map(bytes), ["0 B", "0 B", "1023 B", "1 KB", "1.5 KB", "5 GB", "2000 TB"]);
  assert.deepEqual([12, 3_400, 125_000, 3_720_000].map(duration), ["12 ms", "3.4 s", "2m 5s", "1h 2m"]);
  assert.deepEqual([999, 12_345, 10_000_000].map(count), ["999", "12,345", "10M"]);
  assert.deepEqual([plural(1, "sandbox"), plural(2, "sandbox"), plural(0, "allowance")], ["1 sandbox", "2 sandboxes", "0 allowances"]);
  assert.equal(shortId("sb_01kabcdefghijklmnopqrstuvw"), "sb_…rstuvw");
});
