/**
 * The clocks of the gateways, of the worker and of both are moved by an hour while clients work. That of the NATS server, a Go program,
 * cannot be moved by itself; those of both moved are as far from it as if it had been moved the other way. How it ages what it stores
 * when its own is set is for `test/vm`.
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
const library = globSync("/usr/lib/*/faketime/libfaketime.so.1")[0] ?? assert.fail("libfaketime is missing");
// Only the program itself: the library would fail in what a worker starts, in other user namespaces. It shares memory among what inherits it.
const alone = join(scratch, "alone.mjs");
write(alone, "for (const name of ['LD_PRELOAD', 'NODE_OPTIONS']) delete process.env[name];\n");

function write(file: string, text: string): void {
  writeFileSync(file, text);
  chmodSync(file, 0o644);
}

/** The clock of some programs. */
class Clock {
  readonly #file: string;

  constructor(name: string) {
    this.#file = join(scratch, name);
    this.moveTo("+0");
  }

  /** In the words of libfaketime. */
  moveTo(offset: string): void {
    write(this.#file, `${offset}\n`);
  }

  /** Runs a program of Node.js with this clock. Not for what runs as root before. */
  get through(): string[] {
    const settings = { FAKETIME_TIMESTAMP_FILE: this.#file, FAKETIME_CACHE_DURATION: "1", FAKETIME_DONT_FAKE_MONOTONIC: "1", NO_FAKE_STAT: "1" };
    const variables = { ...settings, LD_PRELOAD: library, NODE_OPTIONS: `--import=${alone}` };
    return ["env", ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
  }
}

const [ofGateways, ofWorker] = [new Clock("gateways"), new Clock("worker")];
const stack = await fixture(
  startStack({
    name: "faults-clock",
    gateways: 2,
    settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" },
    gatewaysThrough: ofGateways.through,
    workersThrough: ofWorker.through,
  }),
);
const clocks: Readonly<Record<string, readonly Clock[]>> = {
  "the gateways' clock": [ofGateways],
  "the worker's clock": [ofWorker],
  "all clocks but that of NATS": [ofGateways, ofWorker],
};

/** Set forward or back, and right again. */
const moved = (name: string, those: readonly Clock[], offset: string): Fault => ({
  name: `${name} at ${offset}`,
  cause: async (random) => {
    for (const clock of those) clock.moveTo(offset);
    try {
      await sleep(between(random, movedMs.least, movedMs.most));
    } finally {
      for (const clock of those) clock.moveTo("+0");
    }
  },
});

test("while clocks are an hour off, and when they are set right, nothing acknowledged is lost", { timeout: 900_000 }, async () => {
  const parts = { gateway: stack.gateway, worker: stack.worker };
  const before = Object.entries(parts).map(([name, part]) => ({ name, part, line: part.lines.length }));
  const faults = Object.entries(clocks).flatMap(([name, those]) => ["+3600", "-3600"].map((offset) => moved(name, those, offset)));
  await endure(stack, { title: "clock", faults: () => faults });
  for (const { name, part, line } of before) {
    const hours = new Set(part.lines.slice(line).map((text) => /"time":"[^T]+T(\d+)/.exec(text)?.[1]));
    assert.ok(hours.size > 1, `the clock of the ${name} has not moved at all`);
  }
});
