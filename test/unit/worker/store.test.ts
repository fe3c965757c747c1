/** The worker's store on a real LMDB. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";
import { Store } from "../../../worker/store.ts";
import { logOf, recordOf } from "./fixtures/records.ts";

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

const all = { accountId: "acct", fromMs: 0, toMs: 1_000, limit: 100 };
const idsOf = (filter: Partial<Parameters<Store["executions"]>[0]> = {}): string[] =>
  store.executions({ ...all, ...filter }).logs.map(({ execution_id }) => execution_id);

test("a record that is stored or deleted is so after kill -9 of the process in the next moment", async () => {
  await store.close();
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "fixtures/store-writer.ts"), join(dir, "lmdb")], {
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
  // The step that was under way may or may not have been taken.
  const unsure = [...found.keys()].filter((id) => !expected.has(id)).concat([...expected].filter((id) => !found.has(id)));
  assert.ok(unsure.length <= 1, `${unsure}`);
  for (const id of expected) if (found.has(id)) assert.deepEqual(found.get(id), recordOf(id));
});

test("records are there after a close, a later one replaces the former, a deleted one is gone with its samples", async () => {
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
  assert.deepEqual(store.samples("sb_2", 0, 10), []);
  assert.equal(store.samples("sb_3", 0, 10).length, 1);
});

test("logs come newest first, up to the limit, with the number of all", async () => {
  for (const at of [3, 1, 2, 5, 4]) await store.putExecution(logOf(`exec_${at}`, at));
  const { logs, total } = store.executions({ ...all, limit: 2 });
  assert.deepEqual(
    logs.map(({ execution_id }) => execution_id),
    ["exec_5", "exec_4"],
  );
  assert.equal(total, 5);
});

test("logs are those of the account, the sandbox and the period, both ends included", async () => {
  for (const at of [10, 20, 30]) await store.putExecution(logOf(`exec_${at}`, at));
  await store.putExecution(logOf("exec_other", 20, { account_id: "acct2" }));
  await store.putExecution(logOf("exec_prefix", 20, { account_id: "acc" }));
  await store.putExecution(logOf("exec_elsewhere", 25, { sandbox_id: "sb2" }));
  assert.deepEqual(idsOf(), ["exec_30", "exec_elsewhere", "exec_20", "exec_10"]);
  assert.deepEqual(idsOf({ fromMs: 10, toMs: 20 }), ["exec_20", "exec_10"]);
  assert.deepEqual(idsOf({ fromMs: 11, toMs: 19 }), []);
  assert.deepEqual(idsOf({ sandboxId: "sb2" }), ["exec_elsewhere"]);
  assert.deepEqual(idsOf({ accountId: "acct2" }), ["exec_other"]);
});

test("the end of an execution replaces its start, what has no end is found", async () => {
  await store.putExecution(logOf("exec_1", 1, { status: "running", exit_code: -1 }));
  await store.putExecution(logOf("exec_2", 2, { status: "running", exit_code: -1 }));
  await store.putExecution(logOf("exec_1", 1, { exit_code: 7 }));
  assert.deepEqual(
    store.unfinishedExecutions().map(({ execution_id }) => execution_id),
    ["exec_2"],
  );
  assert.equal(store.executions(all).total, 2);
});

test("old log entries and samples expire, of every account and sandbox; newer ones stay", async () => {
  for (const account_id of ["acct", "acct2"]) for (const at of [10, 20]) await store.putExecution(logOf(`exec_${at}`, at, { account_id }));
  for (const id of ["sb_1", "sb_2"]) for (const at_ms of [10, 20]) await store.putSample(id, { at_ms, cpu_percent: 0, memory_mb: 0 });
  await store.expire(20, 11);
  assert.deepEqual([...idsOf(), ...idsOf({ accountId: "acct2" })], ["exec_20", "exec_20"]);
  for (const id of ["sb_1", "sb_2"]) {
    assert.deepEqual(
      store.samples(id, 0, 100).map(({ at_ms }) => at_ms),
      [20],
    );
  }
});

test("samples are those of the sandbox and the period, oldest first", async () => {
  for (const at_ms of [30, 10, 20]) await store.putSample("sb_1", { at_ms, cpu_percent: at_ms, memory_mb: 0 });
  await store.putSample("sb_11", { at_ms: 15, cpu_percent: 0, memory_mb: 0 });
  assert.deepEqual(
    store.samples("sb_1", 10, 20).map(({ at_ms }) => at_ms),
    [10, 20],
  );
});
