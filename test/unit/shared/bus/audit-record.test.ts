/** The audit record over a real nats-server: order, bounds, what an outage does to it, and how it is searched. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { type AuditBounds, AuditRecord } from "../../../../shared/bus/audit-record.ts";
import type { Bus } from "../../../../shared/bus/nats.ts";
import { auditSubjects } from "../../../../shared/bus/subjects.ts";
import type { AuditEntry, AuditRecordEntry } from "../../../../shared/schemas/admin/audit.ts";
import { quiet, startNats, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

let nats: TestNats;
let bus: Bus;
beforeEach(async () => {
  nats = await startNats();
  bus = await nats.connect();
});
afterEach(() => nats?.[Symbol.asyncDispose]());

const open = (bounds: Partial<AuditBounds> = {}): Promise<AuditRecord> => AuditRecord.open(bus, { days: 90, ...bounds }, quiet);
const configOf = async () => (await (await jetstreamManager(bus.connection)).streams.info(auditSubjects.stream)).config;
const stored = async (): Promise<number> => (await (await jetstreamManager(bus.connection)).streams.info(auditSubjects.stream)).state.last_seq;

function entry(number: number, change: Partial<AuditRecordEntry> = {}): AuditRecordEntry {
  const who = { by: "browser", operator: false, account_id: "acct_a", key_id: null, address: "198.18.0.1" } as const;
  const what = { action: "makeKey", outcome: "ok", target: `key_${number}`, target_account_id: "acct_a", request_id: `req_${number}` };
  return { time: new Date().toISOString(), ...who, ...what, ...change };
}

/** Records entries and waits until all that come through are stored. */
async function noteAll(record: AuditRecord, entries: readonly AuditRecordEntry[]): Promise<void> {
  const before = await stored();
  for (const each of entries) record.note(each);
  await until("all are stored", async () => (await stored()) === before + entries.length);
}

const all = { isWanted: () => true, fromMs: 0, limit: 1_000 };
const numbers = (entries: readonly AuditEntry[]): number[] => entries.map(({ target }) => Number(target?.slice("key_".length)));
const range = (from: number, to: number): number[] => Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => from + Math.sign(to - from) * index);

/** Everything that is found from page to page. */
async function pages(record: AuditRecord, search: Partial<Parameters<AuditRecord["search"]>[0]>): Promise<AuditEntry[][]> {
  const found: AuditEntry[][] = [];
  for (let before: number | undefined, more = true; more; ) {
    const { entries, next } = await record.search({ ...all, ...search, before });
    found.push(entries);
    [before, more] = [next, next !== undefined];
  }
  return found;
}

test("an empty record has no entries, and what is recorded is found as it was, newest first", async () => {
  const record = await open();
  assert.deepEqual(await record.search(all), { entries: [] });
  const given = [entry(1), entry(2, { change: { tier: "pro", limits: null } }), entry(3, { by: "stranger", account_id: null, outcome: "unauthorized" })];
  await noteAll(record, given);
  const { entries, next } = await record.search(all);
  assert.deepEqual(entries, given.map((each, index) => ({ sequence: index + 1, ...each })).reverse());
  assert.equal(next, undefined);
});

test("it is searched page by page, each entry once, with nothing left after the last", async () => {
  const record = await open();
  await noteAll(
    record,
    range(1, 250).map((number) => entry(number)),
  );
  const found = await pages(record, { limit: 50 });
  assert.deepEqual(
    found.map(({ length }) => length),
    [50, 50, 50, 50, 50],
  );
  assert.deepEqual(numbers(found.flat()), range(250, 1));
  const isWanted = ({ target }: AuditRecordEntry): boolean => target === "key_7" || target === "key_180";
  assert.deepEqual(numbers((await pages(record, { isWanted })).flat()), [180, 7]);
});

test("a search from a time on ends there", async () => {
  const record = await open();
  await noteAll(record, [entry(1), entry(2)]);
  const jsm = await jetstreamManager(bus.connection);
  const second = await jsm.streams.getMessage(auditSubjects.stream, { seq: 2 });
  const fromMs = (second?.time.getTime() ?? 0) + 1;
  await until("time has passed", () => Date.now() > fromMs);
  await noteAll(record, [entry(3)]);
  assert.deepEqual(numbers((await record.search({ ...all, fromMs })).entries), [3]);
});

test("the stream is bounded in bytes, age and entries of one caller, and bounds that change are taken over", async () => {
  await open();
  const first = await configOf();
  assert.deepEqual([first.max_age, first.discard, first.deny_delete, first.deny_purge], [90 * 86_400e9, "old", true, true]);
  assert.ok(first.max_bytes > 0 && first.max_msgs_per_subject > 0);
  await open({ days: 7, bytesMax: 1_000_000 });
  const second = await configOf();
  assert.deepEqual([second.max_age, second.max_bytes, second.storage], [7 * 86_400e9, 1_000_000, "file"]);
});

test("old entries make room when it is full", async () => {
  const record = await open({ bytesMax: 20_000 });
  await noteAll(
    record,
    range(1, 100).map((number) => entry(number)),
  );
  const kept = numbers((await pages(record, {})).flat());
  assert.ok(kept.length > 10 && kept.length < 90, String(kept.length));
  assert.deepEqual(kept, range(100, 101 - kept.length));
});

test("who does much pushes out only entries of their own, and the gap that this leaves is passed", async () => {
  const record = await open({ entriesPerCaller: 20 });
  const other = (number: number) => entry(number, { account_id: "acct_b" });
  await noteAll(record, [other(1), ...range(2, 800).map((number) => entry(number)), other(801)]);
  const expected = [801, ...range(800, 781), 1];
  assert.deepEqual(numbers((await record.search(all)).entries), expected);
  assert.deepEqual(numbers((await pages(record, { limit: 7 })).flat()), expected);
});

test("entries of an outage are recorded after it in their order; those beyond a bound are counted", async () => {
  const record = await open();
  await noteAll(record, [entry(0)]);
  await nats.server.kill9();
  await until("the connection is lost", () => !bus.connected);
  for (const number of range(1, 1_100)) record.note(entry(number));
  assert.equal(record.lost, 100);
  await nats.server.start();
  await until("all are stored", async () => bus.connected && (await stored().catch(() => 0)) >= 1_001, 60_000);
  assert.deepEqual(numbers((await pages(record, {})).flat()), range(1_000, 0));
});

test("an entry that is sent twice, because the answer was lost, is recorded once", async () => {
  const record = await open();
  await noteAll(record, [entry(1)]);
  record.note(entry(1));
  record.note(entry(2));
  await until("the last is stored", async () => (await record.search(all)).entries.some(({ target }) => target === "key_2"));
  assert.deepEqual(numbers((await record.search(all)).entries), [2, 1]);
});

test("stopping waits for what is not stored yet, and counts what cannot be", async () => {
  const record = await open();
  for (const number of range(1, 30)) record.note(entry(number));
  await record.stop();
  assert.deepEqual([record.lost, await stored()], [0, 30]);
  const other = await open();
  await nats.server.kill9();
  await until("the connection is lost", () => !bus.connected);
  for (const number of range(1, 3)) other.note(entry(number));
  await other.stop();
  assert.equal(other.lost, 3);
});
