/** The process beside a NATS server, which looks after a disk of its own that is full for a while. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { appDir } from "../../../../shared/programs.mjs";
import { searchPath } from "../../../../systemd/base/search-path.mjs";
import { childrenOf, commandLineOf } from "../../../../worker/runtime/process/proc.ts";
import { connectBus } from "../../../helpers/bus.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { testPort } from "../../../helpers/ports.ts";
import { TestProcess } from "../../../helpers/process.ts";
import { SmallFileSystem } from "../../../helpers/small-disk.ts";
import { until } from "../../../helpers/until.ts";

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
