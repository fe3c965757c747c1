/** The files of the web pages, as the gateway has them in memory. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { test } from "node:test";
import { bytes, count, duration, plural, relativeTime, shortId } from "../../../gateway/dashboard/app/format.ts";
import { loadDashboard } from "../../../gateway/dashboard/files.ts";

test("all that the page loads and all that its modules import is there", async () => {
  const { page, assets } = await loadDashboard();
  for (const [, path = ""] of page.body.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)) assert.ok(assets.has(path), path);
  for (const [name, { body }] of assets) {
    if (!name.endsWith(".ts")) continue;
    for (const [, path = ""] of body.matchAll(/from "(\.[^"]+)"/g)) assert.ok(assets.has(posix.join(posix.dirname(name), path)), `${name} imports ${path}`);
  }
  assert.ok(assets.has("favicon.svg"));
});

test("modules are served as JavaScript without types, and no other files are", async () => {
  const { page, assets } = await loadDashboard();
  const main = assets.get("main.ts");
  assert.equal(main?.contentType, "text/javascript; charset=utf-8");
  assert.doesNotMatch(main?.body ?? "", /import type|interface |: HTMLElement/);
  assert.equal(page.contentType, "text/html; charset=utf-8");
  assert.deepEqual(
    [...assets.keys()].filter((name) => !/\.(ts|css|svg)$/.test(name)),
    [],
  );
});

test("an asset keeps its tag while it stays the same", async () => {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-pages-"));
  try {
    await writeFile(join(dir, "index.html"), "<!doctype html>");
    await writeFile(join(dir, "main.ts"), "export const a: number = 1;\n");
    const first = await loadDashboard(dir);
    await writeFile(join(dir, "main.ts"), "export const a: number = 2;\n");
    const second = await loadDashboard(dir);
    assert.equal(first.page.etag, second.page.etag);
    assert.notEqual(first.assets.get("main.ts")?.etag, second.assets.get("main.ts")?.etag);
    assert.match(first.page.etag, /^"[\w-]+"$/);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("a page that would not work is an error at the start", async () => {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-pages-"));
  try {
    await assert.rejects(loadDashboard(dir), /has no index\.html/);
    await writeFile(join(dir, "main.ts"), "export const = ;\n");
    await assert.rejects(loadDashboard(dir), /main\.ts/);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("nothing in the pages makes HTML out of text", async () => {
  const { assets } = await loadDashboard();
  for (const [name, { body }] of assets) {
    if (name.endsWith(".ts")) assert.doesNotMatch(body, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser|setHTML/, name);
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
