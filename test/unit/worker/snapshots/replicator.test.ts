/** The queue that copies layers to the object store of a real nats-server. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { execa } from "execa";
import type { SnapshotEntry } from "../../../../shared/bus/entries.ts";
import type { Bus } from "../../../../shared/bus/nats.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { Replicator } from "../../../../worker/snapshots/replicator.ts";
import { type Archive, openArchive } from "../../../helpers/archived.ts";
import { quiet, startNats, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

const MiB = 1024 * 1024;
const layerBytes = 1_000;
let base: string;
let nats: TestNats;
let bus: Bus;
let archive: Archive["archive"];
let listed: Archive["listed"];
let replicator: Replicator;
let done: string[];

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "sandgate-replicator-"));
  nats = await startNats();
  bus = await nats.connect();
  ({ archive, listed } = await openArchive(bus, "w1"));
  done = [];
  replicator = replicatorOf({});
});
afterEach(async () => {
  await replicator?.stop();
  await nats?.[Symbol.asyncDispose]();
  rmSync(base, { recursive: true, force: true });
});

const dirOf = (layerId: string): string => join(base, layerId);

function replicatorOf({
  bytesPerS = 1_000 * MiB,
  giveWay = async (_: AbortSignal): Promise<void> => {},
  onDone = async (id: string): Promise<void> => void done.push(id),
  isThere = (_id: string): boolean => true,
}): Replicator {
  return new Replicator({
    archive,
    bus,
    log: quiet,
    bytesPerS,
    giveWay,
    isThere,
    sourceOf: dirOf,
    layersOf: ({ manifest }) => manifest.layers,
    storeDifference: async () => false,
    onDone,
  });
}

async function layer(mib = 0): Promise<string> {
  const id = newId("layer");
  mkdirSync(dirOf(id));
  writeFileSync(join(dirOf(id), "id"), id);
  if (mib > 0) await execa("sh", ["-c", `head -c ${mib * MiB} /dev/urandom > noise`], { cwd: dirOf(id) });
  return id;
}

function snapshotOf(...layerIds: string[]): SnapshotEntry {
  const layers = layerIds.map((id) => ({ id, size_bytes: layerBytes }));
  const base = { id: "0".repeat(64), env: [], working_dir: "/", user: "" };
  return {
    id: newId("snapshot"),
    name: "s",
    account_id: "acct_1",
    worker_id: "wk_1",
    source_sandbox_id: "sb_1",
    source_sandbox_name: "sb",
    status: "ready",
    created_at_ms: 1,
    consistency: "application",
    size_bytes: layerBytes,
    memory: false,
    pause_ms: 1,
    archived: "pending",
    manifest: { image: "i", base, layers, cpu: 1, memory: 1, storage: 1, network: "none", env_vars: {} },
  };
}

test("snapshots are stored one after another, shared layers only once", async () => {
  const [shared, first, second] = [await layer(), await layer(), await layer()];
  const snapshots = [snapshotOf(first, shared), snapshotOf(second, first, shared)];
  for (const snapshot of snapshots) replicator.add(snapshot);
  assert.equal(replicator.pendingBytes, 3 * layerBytes);
  await until("both snapshots", () => done.length === 2);
  assert.deepEqual(
    done,
    snapshots.map(({ id }) => id),
  );
  assert.deepEqual((await listed()).sort(), [shared, first, second].sort());
  await until("an empty queue", () => replicator.pendingBytes === 0);
  const later = snapshotOf(shared);
  replicator.add(later);
  await until("a later snapshot", () => done.includes(later.id));
});

test("a layer that cannot be stored yet is tried again and does not hold up others", async () => {
  const missing = newId("layer");
  const [bad, good] = [snapshotOf(missing), snapshotOf(await layer())];
  replicator.add(bad);
  replicator.add(good);
  await until("the good one", () => done.length === 1);
  assert.deepEqual(done, [good.id]);
  assert.equal(replicator.pendingBytes, layerBytes);
  mkdirSync(dirOf(missing));
  await until("the other", () => done.length === 2);
  assert.equal(await archive.has(missing), true);
});

test("a snapshot that is deleted while it waits for another attempt is not tried again", async () => {
  const bad = snapshotOf(newId("layer"));
  let isBadThere = true;
  const replicating = replicatorOf({ isThere: (id) => id !== bad.id || isBadThere });
  try {
    replicating.add(bad);
    const good = snapshotOf(await layer());
    replicating.add(good);
    await until("the good one, after the first attempt at the other", () => done.includes(good.id));
    assert.equal(replicating.pendingBytes, layerBytes);
    isBadThere = false;
    await until("nothing waits", () => replicating.pendingBytes === 0);
    assert.deepEqual(done, [good.id]);
  } finally {
    await replicating.stop();
  }
});

test("a layer waits for more urgent work, before its first piece and between pieces", async () => {
  const turns: (() => void)[] = [];
  replicator = replicatorOf({ giveWay: () => new Promise((resolve) => turns.push(resolve)) });
  const id = await layer(1);
  replicator.add(snapshotOf(id));
  for (let taken = 0; !(await archive.has(id)); taken++) {
    await until("a turn to wait for, or the end", async () => turns.length > taken || (await archive.has(id)));
    assert.ok(turns.length <= taken + 1, "nothing goes on before its turn");
    turns[taken]?.();
  }
  assert.ok(turns.length >= 3, "the layer, and its pieces of half a MiB each");
});

test("a completion that could not be reported is reported again", async () => {
  let failures = 1;
  replicator = replicatorOf({
    onDone: async (id) => {
      if (failures-- > 0) throw new Error("nobody listens");
      done.push(id);
    },
  });
  const snapshot = snapshotOf(await layer());
  replicator.add(snapshot);
  await until("the second call", () => done.length === 1);
});

test("after an outage of the bus in the middle of a layer, the layer is stored", async () => {
  replicator = replicatorOf({ bytesPerS: 4 * MiB });
  const id = await layer(4);
  replicator.add(snapshotOf(id));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await nats.server.kill9();
  await until("the outage", () => !bus.connected);
  const during = await layer();
  replicator.add(snapshotOf(during));
  assert.equal(done.length, 0);
  await nats.server.start();
  await until("both", () => done.length === 2, 60_000);
  assert.deepEqual((await listed()).sort(), [id, during].sort());
});

test("storing a forgotten snapshot stops, and the next one is stored", async () => {
  replicator = replicatorOf({ bytesPerS: MiB });
  const [large, small] = [snapshotOf(await layer(20)), snapshotOf(await layer())];
  replicator.add(large);
  replicator.add(small);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await replicator.forget(large.id);
  await until("the other", () => done.length === 1);
  assert.deepEqual(done, [small.id]);
  assert.equal(replicator.pendingBytes, 0);
  assert.equal((await listed()).length, 1);
});

test("a stop aborts the current layer at once, and nothing is accepted after it", async () => {
  replicator = replicatorOf({ bytesPerS: MiB });
  const snapshot = snapshotOf(await layer(40));
  replicator.add(snapshot);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const startedMs = performance.now();
  await replicator.stop();
  assert.ok(performance.now() - startedMs < 10_000, "the layer would have taken 40 s");
  replicator.add(snapshotOf(await layer()));
  assert.deepEqual(done, []);
  assert.deepEqual(await listed(), []);
});

test("a stop ends a wait for the bus or for another attempt", async () => {
  replicator.add(snapshotOf(newId("layer")));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await replicator.stop();
  replicator = replicatorOf({});
  await nats.server.kill9();
  await until("the outage", () => !bus.connected);
  replicator.add(snapshotOf(await layer()));
  await replicator.stop();
});
