/** A volume that cannot grow and is full for a while. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../systemd/base/run.ts";
import { fixture } from "../helpers/fixture.ts";
import { plain } from "../helpers/resilience.ts";
import { startStack } from "../helpers/stack.ts";
import type { Fault } from "./adversary.ts";
import { endure } from "./trial.ts";

const fullMs = 6_000;
const settings = { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_DISK_FLOOR_BYTES: "0", SANDGATE_VOLUME_BYTES_MAX: String(1024 ** 3) };
const stack = await fixture(startStack({ name: "faults-volume", settings }));
const ballast = join(stack.worker.spec.env.SANDGATE_VOLUME_DIR || assert.fail("there is no volume here"), "ballast");

const full: Fault = {
  name: "no space on the volume",
  cause: async (random) => {
    // It ends when nothing more can be written.
    await run(["sh", "-c", 'cat /dev/zero > "$0" 2>/dev/null; sync --file-system "$0"; true', ballast], { cwd: "/" });
    try {
      await sleep(random() * fullMs);
    } finally {
      rmSync(ballast, { force: true });
    }
  },
};

test("while the volume is full, nothing acknowledged is lost", { timeout: 900_000 }, async () => {
  await endure(stack, { title: "volume", faults: () => [full, { ...full, name: "again no space on the volume" }] });
});
