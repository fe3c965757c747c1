/** The process beside a NATS server, which looks after a disk of its own that is full for a while. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { appDir } from "../../../../shared/programs.mjs";
import { searchPath } from "../../../../systemd/base/search-path.mjs";
import { childrenOf, commandLineOf } from "../../../../worker/runtime/process/proc.ts";
import { connectBus } from "../../../helpers/bus.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { listenAt } from "../../../helpers/notices.ts";
import { testPort } from "../../../helpers/ports.ts";
import { TestProcess } from "../../../helpers/process.ts";
import { SmallFileSystem } from "../../../helpers/small-disk.ts";
import { until } from "../../../helpers/until.ts";

const watchdogMs = 2_000;
/** As long as a server that is watched never says nothing. */
const silentMs = 2 * watchdogMs;
const payload = Buffer.alloc(64 * 1024);
const command = join(appDir, "systemd/base/run-nats");
const files = await fixture(SmallFileSystem.make({ name: "run-nats", freeMiB: 100 }, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }));
const store = join(files.mounted, "store");
mkdirSync(store);
const port = await testPort();
const server = await fixture(
  Promise.resolve(
    new TestProcess({
      name: "run-nats",
      argv: [command, store, "nats-server", "--addr", "127.0.0.1", "--port", String(port), "--jetstream", "--store_dir", store],
      env: { PATH: searchPath },
      cwd: "/",
      logFile: "/dev/null",
      isReady: (line) => line.includes("Server is ready"),
    }),
  ),
);

async function withStorage<T>(use: (js: JetStreamClient, jsm: JetStreamManager) => Promise<T>): Promise<T> {
  await using bus = await connectBus(`nats://127.0.0.1:${port}`, "test");
  return await use(jetstream(bus.connection, { timeout: 2_000 }), await jetstreamManager(bus.connection));
}

test("a server whose disk was full is ended as soon as there is room again; started anew, it has everything that it has acknowledged", async () => {
  await server.start();
  const acknowledged: number[] = [];
  const store = async (js: JetStreamClient): Promise<number> => (await js.publish("test.a", payload)).seq;
  await withStorage(async (js, jsm) => {
    await jsm.streams.add({ name: "test", subjects: ["test.>"], storage: StorageType.File });
    acknowledged.push(await store(js));
    await files.fill();
    // What fits into what the disk has set aside may be stored for a while.
    await assert.rejects(async () => {
      for (;;) acknowledged.push(await store(js));
    });
  });
  await until("the disk is found to be full", () => server.lines.some((line) => line.includes("the disk of JetStream is full")));
  assert.ok(server.readyLine, "the server is left alone while there is no room");
  await files.empty();
  await until("the server has been ended", () => server.readyLine === undefined);
  await server.start();
  await withStorage(async (js, jsm) => {
    const { messages, last_seq } = (await jsm.streams.info("test")).state;
    assert.ok(messages >= acknowledged.length && last_seq >= (acknowledged.at(-1) ?? 0), `${messages} messages of ${acknowledged.length} acknowledged ones`);
    assert.ok((await store(js)) > last_seq);
  });
});

test("the watcher goes with its server, however that ends", async () => {
  const [watcher = 0, ...others] = childrenOf(server.pid);
  assert.ok(watcher > 0 && others.length === 0);
  await server.kill9();
  await until("the watcher is gone", () => !commandLineOf(watcher).includes(command));
});

test("it tells systemd when the server takes connections, and that it still does, until it hangs", async () => {
  using folder = temporaryFolder("run-nats");
  const [address, config, place] = [join(folder.path, "notify"), join(folder.path, "nats.conf"), await testPort()];
  writeFileSync(config, JSON.stringify({ listen: `0.0.0.0:${place}` }));
  await using heard = await listenAt(address);
  await using watched = new TestProcess({
    name: "watched",
    argv: [command, folder.path, "nats-server", "--config", config],
    env: { PATH: searchPath, NOTIFY_SOCKET: address, WATCHDOG_USEC: String(watchdogMs * 1_000) },
    cwd: "/",
    logFile: "/dev/null",
    isReady: (line) => line.includes("Server is ready"),
  });
  await watched.start();
  assert.deepEqual([await heard.next(), await heard.next(), await heard.next()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
  watched.signal("SIGSTOP");
  // What it has said before may still be on its way.
  let told = heard.next();
  const isSilent = (): Promise<boolean> => Promise.race([told.then(() => false), sleep(silentMs, true)]);
  while (!(await isSilent())) told = heard.next();
  watched.signal("SIGCONT");
  assert.equal(await told, "WATCHDOG=1");
});
