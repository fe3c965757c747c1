/** The worker's store on a real LMDB. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";
import { Store } from "../../../../worker/store/store.ts";
import { Turns } from "../../../helpers/turns.ts";
import { recordOf } from "../fixtures/records.ts";

let dir: string;
let store: Store;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "sandgate-store-"));
  store = new Store(join(dir, "lmdb"));
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

test("a stored or deleted record stays so after kill -9 of the process a moment later", async () => {
  await store.close();
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "../fixtures/store-writer.ts"), join(dir, "lmdb")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const expected = new Set<string>();
  let lines = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, number] = line.split(" ");
    if (what === "stored") expected.add(`sb_${number}`);
    else expected.delete(`sb_${number}`);
    if (++lines === 100) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  assert.ok(lines >= 100, "the writer ran");
  store = new Store(join(dir, "lmdb"));
  const found = new Map(store.sandboxes().map((record) => [record.id, record]));
  // The step in progress may or may not have been taken.
  const unsure = [...found.keys()].filter((id) => !expected.has(id)).concat([...expected].filter((id) => !found.has(id)));
  assert.ok(unsure.length <= 1, `${unsure}`);
  for (const id of expected) if (found.has(id)) assert.deepEqual(found.get(id), recordOf(id));
});

test("records survive a close, a later one replaces the former, and a deleted one is gone with its samples", async () => {
  await store.putSandbox(recordOf("sb_1"));
  await store.putSandbox({ ...recordOf("sb_1"), status: "error", error: "lost" });
  await store.putSandbox(recordOf("sb_2"));
  await store.putSandbox(recordOf("sb_3"));
  await store.putSample("sb_2", { at_ms: 5, cpu_percent: 1, memory_mb: 2 });
  await store.putSample("sb_3", { at_ms: 5, cpu_percent: 1, memory_mb: 2 });
  await store.deleteSandbox("sb_2");
  await store.close();
  store = new Store(join(dir, "lmdb"));
  assert.deepEqual(
    store.sandboxes().map(({ id, status }) => [id, status]),
    [
      ["sb_1", "error"],
      ["sb_3", "running"],
    ],
  );
  assert.deepEqual(await store.samples("sb_2", 0, 10), []);
  assert.equal((await store.samples("sb_3", 0, 10)).length, 1);
});

test("a snapshot whose deletion was in progress in version 0.1, which had a flag for that, is being deleted", async () => {
  const former = { id: "snap_1", status: "ready", archived: "done" };
  await store.putSnapshot({ ...former, deleting: true } as never);
  assert.deepEqual(store.snapshots(), [{ ...former, status: "deleting" }]);
});

test("old samples of every sandbox expire, even without a record; newer ones stay", async () => {
  for (const id of ["sb_1", "sb_2"]) for (const at_ms of [10, 20]) await store.putSample(id, { at_ms, cpu_percent: 0, memory_mb: 0 });
  await store.expireSamples(11);
  for (const id of ["sb_1", "sb_2"]) {
    assert.deepEqual(
      (await store.samples(id, 0, 100)).map(({ at_ms }) => at_ms),
      [20],
    );
  }
});

test("the samples of a deleted sandbox are removed in steps, between which other work can run", async () => {
  const written: Promise<void>[] = [];
  for (let at_ms = 0; at_ms < 8_640; at_ms++) written.push(store.putSample("sb_1", { at_ms, cpu_percent: 0, memory_mb: 0 }));
  await Promise.all([...written, store.putSandbox(recordOf("sb_1"))]);
  const turns = new Turns();
  await store.deleteSandbox("sb_1");
  assert.ok(turns.stop() > 10);
  assert.deepEqual(await store.samples("sb_1", 0, 10_000), []);
});

test("samples are limited to the sandbox and the period, oldest first", async () => {
  for (const at_ms of [30, 10, 20]) await store.putSample("sb_1", { at_ms, cpu_percent: at_ms, memory_mb: 0 });
  await store.putSample("sb_11", { at_ms: 15, cpu_percent: 0, memory_mb: 0 });
  assert.deepEqual(
    (await store.samples("sb_1", 10, 20)).map(({ at_ms }) => at_ms),
    [10, 20],
  );
});
