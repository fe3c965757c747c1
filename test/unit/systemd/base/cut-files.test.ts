/** Files of JetStream that are cut short, at places that a seed gives: what is missing then is never missing without a word. */
import assert from "node:assert/strict";
import { cpSync, globSync, mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { jetstream, jetstreamManager, StorageType, type StreamAPI } from "@nats-io/jetstream";
import { appDir } from "../../../../shared/programs.mjs";
import { searchPath } from "../../../../systemd/base/search-path.mjs";
import { connectBus } from "../../../helpers/bus.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testPort } from "../../../helpers/ports.ts";
import { TestProcess } from "../../../helpers/process.ts";
import { seededRandom } from "../../../helpers/random.ts";

const seed = Number(process.env.TEST_SEED ?? 4711);
const random = seededRandom(seed);
const [keys, changes] = [40, 1_200];
const bytesMax = 64 * 1024 ** 2;
/** So that there are several files of messages, which have up to 8 MB. */
const padding = "x".repeat(20_000);

const { path: scratch } = fixture(temporaryFolder("cut-files"));
const [whole, store] = [join(scratch, "whole"), join(scratch, "store")];
const port = await testPort();
const server = await fixture(
  Promise.resolve(
    new TestProcess({
      name: "run-nats",
      argv: [
        ...[join(appDir, "systemd/base/run-nats"), store],
        ...["nats-server", "--addr", "127.0.0.1", "--port", String(port), "--jetstream", "--store_dir", store],
      ],
      env: { PATH: searchPath },
      cwd: "/",
      logFile: "/dev/null",
      isReady: (line) => line.includes("Server is ready"),
    }),
  ),
);

/** The last value of each key, by what was acknowledged. */
const acknowledged = new Map<string, string>();
const log = (): string[] => server.linesSinceStart.filter((line) => line.includes("JetStream is damaged"));

async function fill(): Promise<void> {
  await using bus = await connectBus(`nats://127.0.0.1:${port}`, "test");
  const jsm = await jetstreamManager(bus.connection);
  const limits = { max_msgs_per_subject: 1, max_bytes: bytesMax, storage: StorageType.File, discard: "new" as const };
  await jsm.streams.add({ name: "test", subjects: ["test.>"], ...limits });
  const js = jetstream(bus.connection);
  for (let serial = 0; serial < changes; serial++) {
    const [key, value] = [`test.k${Math.floor(random() * keys)}.${serial % 11}`, `${serial} ${padding}`];
    await js.publish(key, value);
    acknowledged.set(key, value);
  }
}

/** How many keys are not as acknowledged. */
async function missing(): Promise<number> {
  await using bus = await connectBus(`nats://127.0.0.1:${port}`, "test");
  const { streams } = await jetstreamManager(bus.connection);
  let count = 0;
  for (const [key, value] of acknowledged) {
    const found = await streams.getMessage("test", { last_by_subj: key }).catch(() => undefined);
    if (found?.string() !== value) count++;
  }
  return count;
}

mkdirSync(store);
await server.start();
await fill();
await server.kill9();
cpSync(store, whole, { recursive: true });
const files = globSync(join(whole, "jetstream/*/streams/test/**/*")).filter((file) => statSync(file).isFile());
const blocks = files.filter((file) => file.endsWith(".blk")).sort((one, other) => Number.parseInt(basename(one), 10) - Number.parseInt(basename(other), 10));
/** The server writes the index of a block a moment after the block. Without one, nothing says what was in there. */
const indexed = blocks.filter((block) => files.includes(block.replace(/blk$/, "idx")));

/** What was in there the moment the server was killed. One that a failed test has left is killed as well. */
async function restore(): Promise<void> {
  await server.kill9();
  rmSync(store, { recursive: true });
  cpSync(whole, store, { recursive: true });
}

test("a store that nothing happened to starts without a word, and has everything", async () => {
  assert.ok(blocks.length > 2 && indexed.length > 1, "there are several files of messages, and of most it is known what is in them");
  await restore();
  await server.start();
  assert.deepEqual([log(), await missing()], [[], 0]);
});

test(`whatever file is cut, the server starts, and what is missing is said (seed ${seed})`, async (context) => {
  for (const file of [...files.filter((one) => !blocks.includes(one)), ...new Set([...indexed.slice(0, 2), ...indexed.slice(-1)])]) {
    for (const part of [0, random(), random(), 1 - random() / 50]) {
      const bytes = Math.floor(statSync(file).size * part);
      const what = `${file.slice(whole.length)} cut to ${bytes} of ${statSync(file).size}`;
      await restore();
      truncateSync(file.replace(whole, store), bytes);
      await server.start();
      const [gone, said] = [await missing(), log()];
      assert.ok(gone === 0 || said.length > 0, `${what}: ${gone} keys are gone without a word`);
      context.diagnostic(`${what}: ${gone} keys are gone${said.length > 0 ? ", which is said" : ""}`);
    }
  }
});

test("an end that was written when the power went costs nothing else", async () => {
  const last = blocks.at(-1) ?? assert.fail();
  await restore();
  // The beginning of a message that nobody was told is stored.
  writeFileSync(last.replace(whole, store), Buffer.from([0x90, 1, 0, 0, 0x99, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3]), { flag: "a" });
  await server.start();
  assert.equal(await missing(), 0);
  assert.match(log().join(), /ends within a change, which is cut off/);
});

test("files that the server has encrypted are left alone", async () => {
  await restore();
  const meta = files.find((file) => basename(file) === "meta.inf") ?? assert.fail();
  truncateSync(meta.replace(whole, store), 1);
  writeFileSync(join(dirname(meta).replace(whole, store), "meta.key"), "");
  await server.start();
  assert.deepEqual(log(), []);
});

test("messages that were deleted, one by one or all, are not missed", async () => {
  const changed = async (change: (streams: StreamAPI) => Promise<unknown>): Promise<void> => {
    {
      await using bus = await connectBus(`nats://127.0.0.1:${port}`, "test");
      const { streams } = await jetstreamManager(bus.connection);
      await change(streams);
    }
    await server.kill9();
    await server.start();
    assert.deepEqual(log(), [], String(change));
  };
  await restore();
  await server.start();
  const deleteFrom = async (streams: StreamAPI, first: number, isErased: boolean): Promise<void> => {
    const { state } = await streams.info("test");
    for (let number = state.last_seq; number >= first; number--) await streams.deleteMessage("test", number, isErased).catch(() => {});
  };
  await changed((streams) => deleteFrom(streams, changes, false));
  await changed((streams) => deleteFrom(streams, changes - 1, true));
  await changed((streams) => streams.purge("test", { seq: Math.floor(changes / 3) }));
  await changed((streams) => deleteFrom(streams, Math.floor(changes / 2), false));
  await changed((streams) => streams.purge("test", { filter: "test.k1.*" }));
  await changed((streams) => deleteFrom(streams, 0, false));
  await fill();
  await changed((streams) => streams.purge("test"));
  await fill();
  await changed((streams) => streams.info("test"));
});
