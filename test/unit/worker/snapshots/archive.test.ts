/** Layers in the object store of a real nats-server. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { execa } from "execa";
import { LayerCollector } from "../../../../gateway/fleet/layers.ts";
import type { SnapshotEntry } from "../../../../shared/bus/entries.ts";
import { layerSubjects } from "../../../../shared/bus/subjects.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { LayerArchive } from "../../../../worker/snapshots/archive.ts";
import { type Archive, openArchive } from "../../../helpers/archived.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { quiet, startNats, type TestNats } from "../../../helpers/nats.ts";
import { residentBytes } from "../../../helpers/prepare.ts";
import { TestProcess } from "../../../helpers/process.ts";
import { until } from "../../../helpers/until.ts";

const MiB = 1024 * 1024;
const unlimited = { bytesPerS: 10_240 * MiB, signal: new AbortController().signal };
const { signal } = unlimited;
let nats: TestNats;
let archive: LayerArchive;
let collector: LayerCollector;
let records: Archive["records"];
let listed: Archive["listed"];
const me = "w1";
let jsm: JetStreamManager;

const { path: base } = fixture(temporaryFolder("archive"));
beforeEach(async () => {
  nats = await startNats();
  const bus = await nats.connect();
  ({ archive, records, listed } = await openArchive(bus, me));
  collector = await LayerCollector.open(bus);
  jsm = await jetstreamManager((await nats.connect()).connection);
});
afterEach(() => nats?.[Symbol.asyncDispose]());

let serial = 0;
const free = (): string => join(base, `d${serial++}`);

/** A folder with a file of random bytes, and one with holes. */
async function layerOf(randomMiB: number, sparseMiB = 0): Promise<string> {
  const dir = free();
  mkdirSync(dir);
  const holes = `truncate -s ${sparseMiB}M holes && printf end | dd of=holes bs=1M seek=${sparseMiB} conv=notrunc`;
  await execa("sh", ["-c", `head -c ${randomMiB * MiB} /dev/urandom > noise; ${sparseMiB ? holes : ""}`], { cwd: dir });
  return dir;
}
const same = async (one: string, two: string): Promise<void> => void (await execa("diff", ["-r", one, two]));
const stored = async (layerId = "*", attempt = "*"): Promise<number> => {
  const filter = { subjects_filter: layerSubjects.pieces(me, layerId, attempt) };
  const { state } = await jsm.streams.info(layerSubjects.stream, filter);
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
};
/** The stream sequence of one of the pieces. */
const pieceOf = async (layerId: string, nth: number): Promise<number> => {
  let seq = 0;
  for (let count = 0; count < nth; count++) {
    const [subject] = Object.keys(
      (await jsm.streams.info(layerSubjects.stream, { subjects_filter: layerSubjects.pieces(me, layerId, "*") })).state.subjects ?? {},
    );
    seq = (await jsm.direct.getMessage(layerSubjects.stream, { seq: seq + 1, next_by_subj: subject as string }))?.seq ?? assert.fail();
  }
  return seq;
};

test("a stored layer is visible to another connection, until it is removed without a trace", async () => {
  const dir = await layerOf(3);
  const id = newId("layer");
  assert.equal(await archive.has(id), false);
  assert.deepEqual(await listed(), []);
  const bytes = await archive.store(id, dir, unlimited);
  assert.ok(bytes > 3 * MiB && bytes < 3.2 * MiB, `${bytes}`);
  assert.equal(await archive.store(id, "/missing", unlimited), bytes);
  const other = await LayerArchive.open(await nats.connect(), me, quiet);
  assert.equal(await other.has(id), true);
  assert.deepEqual(await listed(), [id]);
  const copy = free();
  await other.fetch({ workerId: me, layerId: id }, copy, signal);
  await same(dir, copy);
  await collector.remove(me, id);
  assert.equal(await archive.has(id), false);
  assert.deepEqual(await listed(), []);
  assert.equal((await jsm.streams.info(layerSubjects.stream)).state.messages, 0);
  await collector.remove(me, id);
});

test("many layers are listed, and each is what was stored under its name", async () => {
  const dirs = new Map<string, string>();
  for (let count = 0; count < 12; count++) dirs.set(newId("layer"), await layerOf(1));
  await Promise.all([...dirs].map(([id, dir]) => archive.store(id, dir, unlimited)));
  assert.deepEqual((await listed()).sort(), [...dirs.keys()].sort());
  for (const [id, dir] of dirs) {
    const copy = free();
    await archive.fetch({ workerId: me, layerId: id }, copy, signal);
    await same(dir, copy);
  }
});

test("a layer that is not in the archive cannot be fetched, and no folder is left", async () => {
  const dir = free();
  await assert.rejects(archive.fetch({ workerId: me, layerId: newId("layer") }, dir, signal), { code: "unavailable" });
  assert.equal(existsSync(dir), false);
});

test("a layer with a piece missing, at the start, in the middle or at the end, is refused", async () => {
  const dir = await layerOf(2);
  for (const nth of [1, 3, 5]) {
    const id = newId("layer");
    await archive.store(id, dir, unlimited);
    await jsm.streams.deleteMessage(layerSubjects.stream, await pieceOf(id, nth));
    const copy = free();
    await assert.rejects(archive.fetch({ workerId: me, layerId: id }, copy, signal), { code: "internal_error" });
    assert.equal(existsSync(copy), false);
  }
});

test("a layer whose bytes differ from those stored is refused", async () => {
  const [id, other] = [newId("layer"), newId("layer")];
  await archive.store(id, await layerOf(2), unlimited);
  await archive.store(other, await layerOf(2), unlimited);
  const { js, record } = await recordOf(id);
  const stranger = (await recordOf(other)).record;
  // A whole archive, but not the one that the record describes.
  const subject = layerSubjects.record(me, id);
  await js.publish(subject, JSON.stringify({ ...stranger, name: id, nuid: record.nuid, metadata: record.metadata }));
  const copy = free();
  await assert.rejects(archive.fetch({ workerId: me, layerId: id }, copy, signal), { code: "internal_error", message: /damaged/ });
  assert.equal(existsSync(copy), false);
});

async function recordOf(id: string) {
  const message = await jsm.streams.getMessage(layerSubjects.stream, { last_by_subj: layerSubjects.record(me, id) });
  return { js: jsm.jetstream(), record: message?.json<{ nuid: string; metadata: Record<string, string> }>() ?? assert.fail() };
}

test("leftovers of a killed process are not seen, and go with the next sweep or removal", async () => {
  const dir = await layerOf(8);
  const [again, removed] = [newId("layer"), newId("layer")];
  for (const id of [again, removed]) {
    const storing = new TestProcess({
      name: "storing",
      argv: [process.execPath, "--import", "tsx", "test/unit/worker/fixtures/slow-store.ts", nats.url, id, dir],
      env: { PATH: process.env.PATH ?? "", TMPDIR: tmpdir() },
      cwd: process.cwd(),
      logFile: join(base, "storing.log"),
      isReady: (line) => line === "storing",
    });
    await storing.start();
    await until("some pieces", async () => (await stored(id)) > 3);
    await storing.kill9();
    assert.equal(await archive.has(id), false);
    await assert.rejects(archive.fetch({ workerId: me, layerId: id }, free(), signal), { code: "unavailable" });
  }
  assert.deepEqual(await listed(), []);
  await archive.store(again, dir, unlimited);
  assert.ok((await stored(again)) > 17, "pieces of both attempts");
  await collector.sweep(async () => [snapshotWith(again)]);
  assert.equal(await stored(again), 17);
  await archive.fetch({ workerId: me, layerId: again }, free(), signal);
  await collector.remove(me, removed);
  assert.equal(await stored(removed), 0);
});

/** A snapshot as far as a sweep looks at it. */
const snapshotWith = (...layerIds: string[]): SnapshotEntry =>
  ({ worker_id: me, status: "ready", manifest: { base: { id: "" }, layers: layerIds.map((id) => ({ id, size_bytes: 1 })) } }) as unknown as SnapshotEntry;

test("a sweep removes layers that no snapshot of their worker needs, but not those being stored", async () => {
  const dir = await layerOf(8);
  const [needed, left, storing] = [newId("layer"), newId("layer"), newId("layer")];
  for (const id of [needed, left]) await archive.store(id, dir, unlimited);
  const ends = archive.store(storing, dir, { bytesPerS: 4 * MiB, signal });
  await until("some pieces", async () => (await stored(storing)) > 3);
  const stranger = { ...snapshotWith(left), worker_id: "w2" };
  await collector.sweep(async () => [snapshotWith(needed, storing), stranger]);
  await ends;
  assert.deepEqual((await listed()).sort(), [needed, storing].sort());
  assert.equal(await stored(left), 0);
});

test("an aborted store ends at once and is not seen; the rate is kept", async () => {
  const dir = await layerOf(8);
  const id = newId("layer");
  const abort = new AbortController();
  const bytesPerS = MiB;
  const storing = archive.store(id, dir, { bytesPerS, signal: abort.signal });
  const startedMs = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  await until("some of it", async () => (await stored(id)) > 0);
  const bytes = (await stored(id)) * (bytesPerS / 8);
  const allowed = (bytesPerS * (performance.now() - startedMs)) / 1_000 + bytesPerS / 4;
  assert.ok(bytes > 0 && bytes <= allowed, `${bytes} of ${allowed}`);
  abort.abort();
  await assert.rejects(storing, { name: "AbortError" });
  assert.equal(await archive.has(id), false);
});

test("while the bus is away everything fails as unavailable, including a store and a fetch in progress", async () => {
  const dir = await layerOf(8);
  const [slow, there] = [newId("layer"), newId("layer")];
  await archive.store(there, dir, unlimited);
  const storing = assert.rejects(archive.store(slow, dir, { bytesPerS: MiB, signal }), { code: "unavailable" });
  await until("some pieces", async () => (await stored(slow)) > 3);
  const copy = free();
  const fetching = assert.rejects(archive.fetch({ workerId: me, layerId: there }, copy, signal), { code: "unavailable" });
  await nats.server.kill9();
  await Promise.all([storing, fetching]);
  assert.equal(existsSync(copy), false);
  await assert.rejects(archive.has(there), { code: "unavailable" });
  await assert.rejects(collector.remove(me, there), { code: "unavailable" });
  await assert.rejects(listed(), { code: "unavailable" });
  await nats.server.start();
  await until("the layer", () => archive.has(there));
  await until("the test's own connection is back", async () => (await stored(there)) > 0);
  await archive.store(slow, dir, unlimited);
  await archive.fetch({ workerId: me, layerId: slow }, free(), signal);
});

test("a layer that loses pieces while it is stored is never created", async () => {
  const id = newId("layer");
  const storing = archive.store(id, await layerOf(8), { bytesPerS: 2 * MiB, signal });
  const refused = assert.rejects(storing, { code: "unavailable" });
  await until("some pieces", async () => (await stored(id)) > 3);
  await collector.remove(me, id);
  await refused;
  assert.equal(await archive.has(id), false);
});

for (const [name, randomMiB, sparseMiB] of [
  ["110 MiB of noise", 110, 0],
  ["a file of 400 MiB with holes", 20, 400],
] as const) {
  test(`${name} goes through store and fetch in little memory`, async () => {
    const dir = await layerOf(randomMiB, sparseMiB);
    const id = newId("layer");
    const [copy, startBytes] = [free(), residentBytes(process.pid)];
    let peakBytes = startBytes;
    const watch = setInterval(() => {
      peakBytes = Math.max(peakBytes, residentBytes(process.pid));
    }, 20);
    await archive.store(id, dir, unlimited);
    await archive.fetch({ workerId: me, layerId: id }, copy, signal);
    clearInterval(watch);
    await same(dir, copy);
    assert.ok(peakBytes - startBytes < 100 * MiB, `${Math.round((peakBytes - startBytes) / MiB)} MiB more`);
    const used = async (path: string) => Number((await execa("du", ["-sm", path])).stdout.split("\t")[0]);
    assert.ok(Math.abs((await used(copy)) - (await used(dir))) < 5);
    await collector.remove(me, id);
  });
}

test("layers without a reference are removed, and the others stay", async () => {
  const dir = await layerOf(1);
  const ids = [newId("layer"), newId("layer"), newId("layer")];
  for (const id of ids) await archive.store(id, dir, unlimited);
  assert.deepEqual(await collector.collect(me, [...ids, newId("layer")].slice(0, 3), async () => new Set([ids[1] as string])), [ids[0], ids[2]]);
  assert.deepEqual(await listed(), [ids[1]]);
});

test("a layer that gets a reference while it is being removed stays, and is not seen in between", async () => {
  const id = newId("layer");
  await archive.store(id, await layerOf(1), unlimited);
  const seen: boolean[] = [];
  const answers = [new Set<string>(), new Set([id])];
  const inUse = async (): Promise<Set<string>> => {
    seen.push(await archive.has(id));
    return answers.shift() as Set<string>;
  };
  assert.deepEqual(await collector.collect(me, [id], inUse), []);
  assert.deepEqual(seen, [true, false]);
  await archive.fetch({ workerId: me, layerId: id }, free(), signal);
});

test("the next removal repairs an interrupted one: the layer is seen again or gone", async () => {
  const [kept, gone] = [newId("layer"), newId("layer")];
  for (const id of [kept, gone]) {
    await archive.store(id, await layerOf(1), unlimited);
    await records.mark(me, id, true);
    assert.equal(await archive.has(id), false);
  }
  await collector.collect(me, [kept, gone], async () => new Set([kept]));
  assert.deepEqual(await listed(), [kept]);
  assert.equal(await stored(gone), 0);
});

test("a hidden layer that is stored again has its new content", async () => {
  const id = newId("layer");
  await archive.store(id, await layerOf(1), unlimited);
  await records.mark(me, id, true);
  const dir = free();
  mkdirSync(dir);
  writeFileSync(join(dir, "new"), "new");
  await archive.store(id, dir, unlimited);
  await records.mark(me, id, false);
  const copy = free();
  await archive.fetch({ workerId: me, layerId: id }, copy, signal);
  assert.equal(readFileSync(join(copy, "new"), "utf8"), "new");
});
