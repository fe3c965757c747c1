/** Snapshots of sandboxes that write, fork and are restored from each other: on one installation without a volume that archives nothing. */
import { describe } from "node:test";
import { fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { chainTests } from "./chain.ts";
import { consistencyTests } from "./consistency.ts";
import { processTests } from "./processes.ts";

const stack = await fixture(startStack({ name: "snap-folders", settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_VOLUME: "none" } }));

describe("chain", () => chainTests(stack, 10));
// Here, where a sandbox stands still for as long as its files are copied.
describe("processes", () => processTests(stack));
describe("consistency", () => consistencyTests(stack));
