/** What the README says is so. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { routes } from "../../gateway/api/routes.ts";
import { pagePaths } from "../../gateway/handlers/pages.ts";
import { describeSettings } from "../../shared/config.ts";

const readme = readFileSync("README.md", "utf8");

test("the README lists every setting with its default and meaning", () => {
  for (const { name, fallback, about } of describeSettings()) {
    assert.ok(readme.includes(`| \`${name}\` | ${fallback ? `\`${fallback}\`` : ""} | ${about} |`), `${name} is missing or out of date`);
  }
});

/** What browsers load; the README tells of the pages as a whole. */
const isPage = (path: string): boolean => pagePaths.some((page) => page === path) || path.startsWith("/assets/") || path === "/favicon.svg";

test("the README lists every call", () => {
  for (const { method, path } of routes.filter((route) => !isPage(route.path)))
    assert.ok(readme.includes(`${method} ${path.replace(":id", "{id}")}`), `${method} ${path} is missing`);
});

test("the README names no folder that is not there", () => {
  for (const [, folder] of readme.matchAll(/^\| `([a-z]+)\/` \|/gm)) assert.ok(folder && existsSync(folder), `${folder}/ is missing`);
});
