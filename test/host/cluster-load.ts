/**
 * Clients of several gateways, which make and end sandboxes and keys and run commands until a file is there. What they are told is
 * compared with what there is: right away where an answer can be checked, and at the end with everything that exists. Then the
 * sandboxes are deleted. What clients choose is given by the seed in `TEST_FAULTS`.
 *
 * Arguments: the API key, the file, the gateways' URLs. Prints a report as JSON.
 */
import { existsSync } from "node:fs";
import { Keys } from "./load/keys.ts";
import { Report } from "./load/report.ts";
import { Sandboxes } from "./load/sandboxes.ts";
import { streamClient } from "./load/streams.ts";

const [key = "", stopFile = "", ...gateways] = process.argv.slice(2);
const report = new Report(gateways, () => existsSync(stopFile));
const sandboxes = new Sandboxes(report, key);
const keys = await Keys.signUp(report);
await Promise.all([
  ...["one", "two"].map((name) => sandboxes.client(name)),
  ...["keys one", "keys two"].map((name) => keys.client(name)),
  streamClient(report, key, await sandboxes.keep("streams")),
]);
await report.verify("sandboxes", () => sandboxes.verify());
await report.verify("keys", () => keys.verify());
await report.verify("deletion", () => sandboxes.clear());
console.log(JSON.stringify(report));
process.exit(0);
