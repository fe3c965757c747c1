/** What a service tells its service manager, heard by a real datagram socket. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { takeServiceVariables } from "../../../../shared/config.ts";
import { ServiceManager } from "../../../../shared/util/service-manager.ts";
import { Shutdown } from "../../../../shared/util/shutdown.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { quiet } from "../../../helpers/nats.ts";
import { listenAt } from "../../../helpers/notices.ts";

function manager(socket: string | undefined, watchdogMicros?: number): ServiceManager {
  if (socket !== undefined) process.env.NOTIFY_SOCKET = socket;
  if (watchdogMicros !== undefined) process.env.WATCHDOG_USEC = String(watchdogMicros);
  const found = new ServiceManager(takeServiceVariables());
  assert.deepEqual([process.env.NOTIFY_SOCKET, process.env.WATCHDOG_USEC], [undefined, undefined]);
  return found;
}

test("it hears that the service is ready, lives and stops, and programs started later do not know of it", async () => {
  using folder = temporaryFolder("manager");
  const address = join(folder.path, "notify");
  await using heard = await listenAt(address);
  const shutdown = new Shutdown(quiet);
  await manager(address, 20_000).ready(shutdown, quiet);
  assert.deepEqual([await heard.next(), await heard.next(), await heard.next()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
  await shutdown.stop("asked");
  let last: unknown;
  do last = await heard.next();
  while (last === "WATCHDOG=1");
  assert.equal(last, "STOPPING=1");
});

test("an address in the abstract namespace is reached as well", async () => {
  const name = `sandgate-test-${process.pid}`;
  await using heard = await listenAt(`@${name}`);
  await manager(`@${name}`).ready(new Shutdown(quiet), quiet);
  assert.equal(await heard.next(), "READY=1");
});

test("a service manager that is gone does not end the service", async () => {
  const shutdown = new Shutdown(quiet);
  await manager("/none/notify").ready(shutdown, quiet);
  assert.equal(await shutdown.stop("asked"), 0);
});
