/** Parts that are killed and stopped at any moment and at every declared point, and records that are damaged, while clients work. */
import { join } from "node:path";
import { test } from "node:test";
import { fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { plain } from "../helpers/resilience.ts";
import { startStack } from "../helpers/stack.ts";
import { Adversary } from "./adversary.ts";
import { endure } from "./trial.ts";

const { path: scratch } = fixture(temporaryFolder("faults", 0o755));
const points = join(scratch, "point");
// Always as many containers wait as at the beginning.
const waiting = 2;
const pool = { SANDGATE_POOL_SIZE: String(waiting), SANDGATE_POOL_SIZE_MAX: String(waiting) };
const settings = { ...plain, ...pool, SANDGATE_TEST_FAULT: points, SANDGATE_SNAPSHOT_ARCHIVE_IMAGES: "false" };
const stack = await fixture(startStack({ name: "faults", gateways: 2, helperProcess: true, settings }));

test("whatever is killed, stopped or damaged, what clients were told is so, nothing runs twice, and nothing is left", { timeout: 1_800_000 }, async () => {
  await endure(stack, { title: "parts", waiting, faults: (client) => new Adversary(stack, client, points).faults() });
});
