/** The order in which `npm test` begins files. */
import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { appDir } from "../../shared/programs.mjs";
import { notedDurations, spread } from "../helpers/order.ts";

test("durations are noted of files that exist", () => {
  const gone = Object.keys(notedDurations()).filter((path) => !existsSync(join(appDir, path)));
  assert.deepEqual(gone, [], "npm test -- --durations notes them anew");
});

test("all files begin once, the longest of each kind first, and those with installations not all at once", () => {
  const files = globSync("test/e2e/**/*.test.ts", { cwd: appDir });
  const short = { "test/e2e/resilience/claims.test.ts": 30 };
  const durations = { ...short, "test/e2e/resilience/gateway.test.ts": 60, "test/e2e/dashboard/pages.test.ts": 90, "test/e2e/files/transfer.test.ts": 70 };
  const order = spread(files, durations);
  assert.deepEqual(order.toSorted(), files.toSorted());
  const at = (part: string): number => order.findIndex((path) => path.includes(part));
  assert.ok(at("resilience/gateway") < at("resilience/claims"));
  for (const first of ["resilience/gateway", "dashboard/pages", "files/transfer"]) assert.ok(at(first) < 6, `${first} is at ${at(first)}`);
  const [one, other] = ["resilience/claims", "dashboard/"].map((part) => order.findLastIndex((path) => path.includes(part))) as [number, number];
  assert.ok(one > 2 && other > order.length / 2);
});
