/** A disk of the NATS server that is full for a while. The server does not go on by itself then: what starts it also ends it. */
import { test } from "node:test";
import { run } from "../../systemd/base/run.ts";
import { Api } from "../helpers/api.ts";
import { atEnd, fixture } from "../helpers/fixture.ts";
import { plain } from "../helpers/resilience.ts";
import { SmallFileSystem } from "../helpers/small-disk.ts";
import { startStack } from "../helpers/stack.ts";
import { until } from "../helpers/until.ts";
import type { Fault } from "./adversary.ts";
import { fullFor } from "./full.ts";
import { endure } from "./trial.ts";

const stack = await fixture(startStack({ name: "faults-jetstream", settings: plain }));
const { nats, instance } = stack;
const store = instance.paths.nats;
const files = await fixture(SmallFileSystem.make({ name: "jetstream", freeMiB: 300, freeInodes: 20_000 }, instance.accounts.nats));
const asRoot = (...argv: string[]): Promise<string> => run(argv, { cwd: "/" });

// Its store moves to the small disk while it is down.
await nats.kill9();
await asRoot("cp", "-a", `${store}/.`, files.mounted);
await asRoot("mount", "--bind", files.mounted, store);
atEnd(async () => {
  await nats.kill9();
  await asRoot("umount", "--lazy", store);
});
await nats.start();
const api = new Api(stack);
// The worker may be back on the bus later than the gateway.
await until("sandboxes can be made again", async () => {
  const { status, body } = await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
  if (status === 201) await api.delete(body.id);
  return status === 201;
});

/** Starts the server again when it was ended, as its supervisor does. */
const withSupervisor = (fault: Fault): Fault => ({
  ...fault,
  cause: async (random) => {
    await fault.cause(random);
    await until("the server has been ended", () => nats.readyLine === undefined);
    await nats.start();
  },
});

test("while JetStream's disk is full, nothing acknowledged is lost, and all goes on when it has room again", { timeout: 900_000 }, async () => {
  await endure(stack, { title: "disk of JetStream", faults: () => fullFor("JetStream", files).map(withSupervisor) });
});
