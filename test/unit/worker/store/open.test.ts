/** Opening records that may be damaged. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { createLogger } from "../../../../shared/util/log.ts";
import type { LogLimits } from "../../../../worker/log/execution-log.ts";
import { openStore } from "../../../../worker/store/open.ts";
import { recordOf } from "../fixtures/records.ts";

const log = createLogger("worker", "silent");
const unlimited: LogLimits = { sandboxBytes: Number.POSITIVE_INFINITY, accountBytes: Number.POSITIVE_INFINITY, hasRoom: () => true };
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "sandgate-store-open-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const open = () => openStore(join(dir, "lmdb"), log, unlimited, join(dir, "journal"));
const aside = (): string[] => readdirSync(dir).filter((name) => name.includes(".broken-"));

async function withRecords(): Promise<string> {
  const { store, isLost, settled } = await open();
  assert.equal(isLost, false);
  for (let index = 0; index < 50; index++) await store.putSandbox(recordOf(`sb_${index}`));
  settled();
  await store.close();
  return join(dir, "lmdb/data.mdb");
}

test("intact records are opened unchanged, even after a start that was cut short", async () => {
  await withRecords();
  for (let start = 0; start < 2; start++) {
    const { store, isLost } = await open();
    assert.deepEqual([isLost, store.sandboxes().length, aside().length], [false, 50, 0]);
    await store.close();
  }
});

test("truncated records are moved aside, and count as lost until a start completes", async () => {
  const file = await withRecords();
  truncateSync(file, Math.floor(statSync(file).size / 2));
  for (const asideCount of [1, 1]) {
    const { store, isLost } = await open();
    assert.deepEqual([isLost, store.sandboxes().length, aside().length], [true, 0, asideCount]);
    // What only this worker knew has survived.
    assert.deepEqual(store.factsOf("sb_7")?.env_vars, recordOf("sb_7").env_vars);
    await store.close();
  }
  const last = await open();
  last.settled();
  await last.store.close();
  const { store, isLost } = await open();
  assert.equal(isLost, false);
  await store.close();
});

test("a file that is not LMDB's is moved aside", async () => {
  const file = await withRecords();
  writeFileSync(file, "no records at all");
  const { store, isLost } = await open();
  assert.deepEqual([isLost, aside().length, existsSync(file)], [true, 1, true]);
  await store.close();
});

test("facts that are cut short are told from those that a sandbox has not", async () => {
  await withRecords();
  const file = join(dir, "lmdb.facts/sb_7.json");
  truncateSync(file, Math.floor(statSync(file).size / 2));
  const { store } = await open();
  assert.equal(store.factsOf("sb_7"), undefined);
  assert.deepEqual(store.factsOf("sb_none"), { env_vars: {} });
  await store.close();
});

test("facts of sandboxes that have no record, and those that were being written, are removed", async () => {
  await withRecords();
  const { store } = await open();
  await store.putFacts(recordOf("sb_none"));
  writeFileSync(join(dir, "lmdb.facts/sb_7.json.partial"), "{");
  store.removeStrayFacts();
  const kept = store.sandboxes().map(({ id }) => `${id}.json`);
  assert.deepEqual(readdirSync(join(dir, "lmdb.facts")).toSorted(), kept.toSorted());
  await store.close();
});
