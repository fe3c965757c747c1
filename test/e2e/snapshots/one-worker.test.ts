/** Snapshots of sandboxes that write and are restored from each other: on one installation with a volume that archives nothing. */
import { describe } from "node:test";
import { fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { chainTests } from "./chain.ts";
import { consistencyTests } from "./consistency.ts";

const stack = await fixture(startStack({ name: "snap-one-worker", settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" } }));

// Each is a whole of its own, however many came before it.
describe("chain", () => chainTests(stack, 4));
describe("consistency", () => consistencyTests(stack));
