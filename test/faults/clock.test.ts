/**
 * The clock of the gateways is moved by an hour while clients work. That of the NATS server, a Go program, cannot be moved by itself,
 * nor that of the worker: the library would follow what it starts into other user namespaces, and fails there.
 */
import assert from "node:assert/strict";
import { chmodSync, globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { plain } from "../helpers/resilience.ts";
import { startStack } from "../helpers/stack.ts";
import type { Fault } from "./adversary.ts";
import { between } from "./plan.ts";
import { endure } from "./trial.ts";

const movedMs = { least: 4_000, most: 8_000 };

const { path: scratch } = fixture(temporaryFolder("clock", 0o755));
const clock = join(scratch, "clock");

/** In the words of libfaketime. */
function moveTo(offset: string): void {
  writeFileSync(clock, `${offset}\n`);
  chmodSync(clock, 0o644);
}

moveTo("+0");
const library = globSync("/usr/lib/*/faketime/libfaketime.so.1")[0] ?? assert.fail("libfaketime is missing");
const variables = { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_CACHE_DURATION: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1" };
// Not for what runs as root before: the library shares memory with programs that are started later, under other users.
const gatewaysThrough = ["env", ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
const stack = await fixture(startStack({ name: "faults-clock", gateways: 2, settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" }, gatewaysThrough }));

/** Set forward or back, and right again. */
const moved = (offset: string): Fault => ({
  name: `the clock at ${offset}`,
  cause: async (random) => {
    moveTo(offset);
    try {
      await sleep(between(random, movedMs.least, movedMs.most));
    } finally {
      moveTo("+0");
    }
  },
});

test("while the clock is an hour off, and when it is set right, nothing acknowledged is lost", { timeout: 900_000 }, async () => {
  const line = stack.gateway.lines.length;
  await endure(stack, { title: "clock", faults: () => ["+3600", "-3600"].map(moved) });
  const hours = new Set(stack.gateway.lines.slice(line).map((text) => /"time":"[^T]+T(\d+)/.exec(text)?.[1]));
  assert.ok(hours.size > 1, "the clock has not moved at all");
});
