/** A worker and a bus that are killed, stopped or lose their records: on one installation. */
import { describe } from "node:test";
import { fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { damagedRecordTests } from "./damaged-records.ts";
import { drainTests } from "./drain.ts";
import { natsTests } from "./nats.ts";
import { workerTests } from "./worker.ts";

// Draining takes as long as a test of it needs; all others kill.
const settings = { ...plain, SANDGATE_DRAIN_MS: "30000", SANDGATE_SNAPSHOT_ARCHIVE: "false" };
const stack = await fixture(startStack({ name: "resilience", settings }));

describe("worker", () => workerTests(stack));
describe("NATS", () => natsTests(stack));
describe("draining", () => drainTests(stack));
describe("damaged records", () => damagedRecordTests(stack));
