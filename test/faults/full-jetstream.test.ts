/** A disk of the NATS server that is full for a while. */
import { test } from "node:test";
import { run } from "../../systemd/base/run.ts";
import { atEnd, fixture } from "../helpers/fixture.ts";
import { plain } from "../helpers/resilience.ts";
import { SmallFileSystem } from "../helpers/small-disk.ts";
import { startStack } from "../helpers/stack.ts";
import { fullFor } from "./full.ts";
import { endure } from "./trial.ts";

const stack = await fixture(startStack({ name: "faults-jetstream", settings: plain }));
const { accounts, paths } = stack.instance;
const files = await fixture(SmallFileSystem.make({ name: "jetstream", freeMiB: 300 }, accounts.nats));

// Its store moves to the small disk while it is down.
await stack.nats.kill9();
await run(["cp", "-a", `${paths.nats}/.`, files.mounted], { cwd: "/" });
await run(["mount", "--bind", files.mounted, paths.nats], { cwd: "/" });
atEnd(async () => {
  await stack.nats.kill9();
  await run(["umount", "--lazy", paths.nats], { cwd: "/" });
});
await stack.nats.start();
await stack.ready();

test("while JetStream's disk is full, nothing acknowledged is lost", { timeout: 900_000 }, async () => {
  await endure(stack, { title: "disk of JetStream", faults: () => fullFor("JetStream", files) });
});
