/** A disk of records and sandboxes that is full for a while. */
import { test } from "node:test";
import { fixture } from "../helpers/fixture.ts";
import { plain } from "../helpers/resilience.ts";
import { SmallDisk } from "../helpers/small-disk.ts";
import { fullFor } from "./full.ts";
import { endure } from "./trial.ts";

const settings = { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" };
const { stack, files } = await fixture(SmallDisk.open({ name: "faults", freeMiB: 800, freeInodes: 40_000, settings }));

test("while the disk of records and sandboxes is full, nothing acknowledged is lost", { timeout: 900_000 }, async () => {
  await endure(stack, { title: "disk of the worker", faults: () => fullFor("records and sandboxes", files) });
});
