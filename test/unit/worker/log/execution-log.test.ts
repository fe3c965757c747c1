/** The execution log, on a real LMDB. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { open } from "lmdb";
import type { LogEntry } from "../../../../shared/bus/contract/commands.ts";
import type { LogFilter } from "../../../../worker/log/execution-log.ts";
import { LogJournal } from "../../../../worker/log/journal.ts";
import { Store } from "../../../../worker/store/store.ts";
import { Turns } from "../../../helpers/turns.ts";
import { until } from "../../../helpers/until.ts";
import { logOf } from "../fixtures/records.ts";

const KiB = 1024;
const minuteMs = 60_000;
let dir: string;
let store: Store;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "sandgate-log-"));
  store = new Store(join(dir, "lmdb"));
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

const all: LogFilter = { accountId: "acct", fromMs: 0, toMs: Number.MAX_SAFE_INTEGER - 1, limit: 1_000, bytesMax: KiB * KiB };
const page = (filter: Partial<LogFilter> = {}) => store.log.page({ ...all, ...filter });
const idsOf = async (filter: Partial<LogFilter> = {}): Promise<string[]> => (await page(filter)).logs.map(({ execution_id }) => execution_id);
const put = (...entries: LogEntry[]) => Promise.all(entries.map((entry) => store.log.put(entry)));

async function reopen(...limits: ConstructorParameters<typeof Store> extends [string, ...infer L] ? L : never): Promise<void> {
  await store.close();
  store = new Store(join(dir, "lmdb"), ...limits);
}

/** Reads page after page to the end. */
async function walk(filter: Partial<LogFilter>): Promise<LogEntry[][]> {
  const pages: LogEntry[][] = [];
  for (let after: LogEntry | undefined; ; ) {
    const { logs, more } = await page({ ...filter, after });
    pages.push(logs);
    if (!more) return pages;
    after = logs.at(-1);
  }
}

test("logs come newest first, up to the limit, with the total number", async () => {
  for (const at of [3, 1, 2, 5, 4]) await put(logOf(`exec_${at}`, at));
  const { logs, total, more } = await page({ limit: 2 });
  assert.deepEqual([logs.map(({ execution_id }) => execution_id), total, more], [["exec_5", "exec_4"], 5, true]);
  assert.equal((await page({ limit: 5 })).more, false);
});

test("logs are limited to the account, the sandbox and the period, both ends included", async () => {
  for (const at of [10, 20, 30]) await put(logOf(`exec_${at}`, at));
  await put(logOf("exec_other", 20, { account_id: "acct2" }), logOf("exec_prefix", 20, { account_id: "acc" }));
  await put(logOf("exec_elsewhere", 25, { sandbox_id: "sb2" }));
  assert.deepEqual(await idsOf(), ["exec_30", "exec_elsewhere", "exec_20", "exec_10"]);
  assert.deepEqual(await idsOf({ fromMs: 10, toMs: 20 }), ["exec_20", "exec_10"]);
  assert.deepEqual(await idsOf({ fromMs: 11, toMs: 19 }), []);
  assert.deepEqual(await idsOf({ sandboxId: "sb2" }), ["exec_elsewhere"]);
  assert.deepEqual(await idsOf({ accountId: "acct2" }), ["exec_other"]);
});

test("the end of an execution replaces its start, and unfinished ones are found", async () => {
  await put(logOf("exec_1", 1, { status: "running", exit_code: -1 }), logOf("exec_2", 2, { status: "running", exit_code: -1 }));
  await put(logOf("exec_1", 1, { exit_code: 7 }));
  assert.deepEqual(
    store.log.unfinished().map(({ execution_id }) => execution_id),
    ["exec_2"],
  );
  assert.equal((await page()).total, 2);
});

test("every total equals a count of the rows, for any period, while rows come, change and go", async () => {
  const rows: LogEntry[] = [];
  for (let index = 0; index < 300; index++) {
    rows.push(logOf(`exec_${index}`, Math.floor((index * 7_919) % (10 * minuteMs)), { sandbox_id: `sb_${index % 3}`, account_id: `acct${index % 2 || ""}` }));
  }
  await put(...rows);
  await put(...rows.slice(0, 50).map((row) => ({ ...row, stdout: "more" })));
  await store.log.tidy(2 * minuteMs + 500);
  const left = rows.filter(({ started_at_ms }) => started_at_ms >= 2 * minuteMs + 500);
  const times = [0, 1, minuteMs - 1, minuteMs, 2 * minuteMs + 700, 3 * minuteMs, 5 * minuteMs - 1, 5 * minuteMs, 9 * minuteMs + 12_345, 20 * minuteMs];
  for (const accountId of ["acct", "acct1", "none"]) {
    for (const sandboxId of [undefined, "sb_0", "sb_2", "none"]) {
      const of = left.filter((row) => row.account_id === accountId && (sandboxId === undefined || row.sandbox_id === sandboxId));
      for (const fromMs of times) {
        for (const toMs of times) {
          if (toMs < fromMs) continue;
          const counted = of.filter(({ started_at_ms }) => started_at_ms >= fromMs && started_at_ms <= toMs).length;
          const { total, logs } = await page({ accountId, sandboxId, fromMs, toMs });
          assert.deepEqual([total, logs.length], [counted, counted], `${accountId} ${sandboxId} ${fromMs} ${toMs}`);
        }
      }
      assert.equal(store.log.total({ accountId, sandboxId }).rows, of.length);
    }
  }
});

test("callers' texts are cut at 4 KiB between characters, and the length of the command is reported", async () => {
  const command = `x${"€".repeat(2_000)}`;
  await put(logOf("exec_1", 1, { command, working_dir: `/${"ü".repeat(4_000)}`, error: "e".repeat(10_000) }));
  const [entry] = (await page()).logs;
  assert.equal(entry?.command, `x${"€".repeat(1_365)}`);
  assert.equal(entry?.command_bytes, 6_001);
  assert.equal(entry?.working_dir, `/${"ü".repeat(2_047)}`);
  assert.equal(entry?.error, "e".repeat(4_096));
  await put({ ...(entry as LogEntry), exit_code: 1 });
  assert.equal((await page()).logs[0]?.command_bytes, 6_001, "also when the entry is written again");
  await put(logOf("exec_2", 2, { command: "y".repeat(4_096) }));
  assert.equal((await page()).logs[0]?.command_bytes, undefined);
});

test("pages respect their byte limit with any characters, and together hold every row once", async () => {
  const rows = Array.from({ length: 40 }, (_, index) =>
    logOf(`exec_${String(index).padStart(2, "0")}`, Math.floor(index / 4), {
      command: "\u0001".repeat(130_500),
      stdout: "\u0002".repeat(4_096),
      sandbox_id: `sb_${index % 2}`,
    }),
  );
  await put(...rows);
  const newest = rows.map(({ execution_id }) => execution_id).reverse();
  for (const sandboxId of [undefined, "sb_1"]) {
    const pages = await walk({ sandboxId, bytesMax: 128 * KiB });
    assert.ok(pages.length > 4);
    for (const logs of pages) assert.ok(Buffer.byteLength(JSON.stringify(logs)) <= 129 * KiB);
    const expected = sandboxId ? newest.filter((_, index) => index % 2 === 0) : newest;
    assert.deepEqual(
      pages.flat().map(({ execution_id }) => execution_id),
      expected,
    );
  }
  assert.ok(
    (await walk({ bytesMax: 0 })).every((logs) => logs.length === 1),
    "one row comes in any case",
  );
});

test("a page continues where the last one ended, even if its last row is gone and newer ones have come", async () => {
  for (let at = 0; at < 10; at++) await put(logOf(`exec_${at}`, at));
  const { logs } = await page({ limit: 5 });
  await put(logOf("exec_new", 100));
  await store.log.tidy(6);
  assert.deepEqual(await idsOf({ after: logs.at(-1) }), []);
  await put(logOf("exec_late", 2));
  assert.deepEqual(await idsOf({ after: logs.at(-1) }), ["exec_late"]);
});

test("long reads, counts and removals let other work run in between", async () => {
  const rows = Array.from({ length: 20_000 }, (_, index) => logOf(`exec_${index}`, index * 1_000, { stdout: "some output" }));
  await put(...rows);
  const turnsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const turns = new Turns();
    await work();
    return turns.stop();
  };
  assert.ok((await turnsOf(() => page({ limit: 20_000, bytesMax: 100 * KiB * KiB }))) > 5, "a page");
  assert.ok((await turnsOf(() => store.log.tidy(15_000 * 1_000))) > 100, "a removal");
  assert.equal((await page()).total, 5_000);
});

test("the oldest rows of a sandbox and of an account give way to new ones", async () => {
  const limits = { sandboxBytes: 64 * KiB, accountBytes: 160 * KiB };
  await reopen(limits);
  for (let at = 0; at < 400; at++) {
    await put(logOf(`exec_a${at}`, at, { command: "c".repeat(at % 7 === 0 ? 4_000 : 10) }), logOf(`exec_b${at}`, at, { account_id: "acct2" }));
    assert.ok(store.log.total({ accountId: "acct", sandboxId: "sb" }).bytes <= limits.sandboxBytes);
  }
  const own = await idsOf();
  assert.equal(own[0], "exec_a399");
  assert.deepEqual(
    own,
    Array.from({ length: own.length }, (_, index) => `exec_a${399 - index}`),
    "those that are left have no gap",
  );
  for (let at = 400; at < 700; at++) await put(...["sb", "sb_2", "sb_3", "sb_4"].map((sandbox_id) => logOf(`exec_${sandbox_id}_${at}`, at, { sandbox_id })));
  assert.ok(store.log.total({ accountId: "acct" }).bytes <= limits.accountBytes);
  assert.ok(store.log.total({ accountId: "acct2" }).rows > 50, "those of others stay");
});

test("lowered limits apply after the next tidying", async () => {
  await put(...Array.from({ length: 500 }, (_, at) => logOf(`exec_${at}`, at)));
  await reopen({ sandboxBytes: 32 * KiB, accountBytes: KiB * KiB });
  await store.log.tidy(0);
  const { bytes, rows } = store.log.total({ accountId: "acct" });
  assert.ok(bytes <= 32 * KiB && rows > 20, `${bytes} bytes`);
});

test("on a full disk nothing new is written, and running executions get their end without output", async () => {
  let hasRoom = true;
  await reopen({ hasRoom: () => hasRoom });
  await put(logOf("exec_1", 1, { status: "running", exit_code: -1 }));
  const { bytes } = store.log.total({ accountId: "acct" });
  hasRoom = false;
  await put(logOf("exec_2", 2, { status: "running", exit_code: -1 }), logOf("exec_2", 2));
  await put(logOf("exec_1", 1, { exit_code: 3, stdout: "x".repeat(4_000) }));
  const [entry, ...others] = (await page()).logs;
  assert.deepEqual([entry?.exit_code, entry?.stdout, entry?.stdout_truncated, others.length], [3, "", true, 0]);
  assert.equal(store.log.total({ accountId: "acct" }).bytes, bytes);
  hasRoom = true;
  await put(logOf("exec_3", 3));
  assert.deepEqual(await idsOf(), ["exec_3", "exec_1"]);
});

test("rows of an earlier version are moved, counted and shortened, in steps; executions running then are ended", async () => {
  await store.close();
  const root = open({ path: join(dir, "lmdb"), maxDbs: 16 });
  const former = root.openDB<LogEntry, [string, number, string]>({ name: "executions" });
  for (let at = 0; at < 1_000; at++) {
    void former.put(
      ["acct", at, `exec_${at}`],
      logOf(`exec_${at}`, at, { command: "c".repeat(at === 999 ? 130_000 : 5), status: at === 500 ? "running" : "completed" }),
    );
  }
  await root.flushed;
  await root.close();
  store = new Store(join(dir, "lmdb"));
  const turns = new Turns();
  await store.log.tidy(10);
  assert.ok(turns.stop() > 10);
  const { logs, total } = await page({ limit: 2_000 });
  assert.deepEqual([logs.length, total], [990, 990]);
  assert.equal(logs[0]?.command_bytes, 130_000);
  assert.equal(logs.find(({ execution_id }) => execution_id === "exec_500")?.status, "error");
  assert.equal(store.log.unfinished().length, 0);
});

test("with a journal nothing waits for the disk, and what was not committed is there after a crash", async () => {
  const journal = join(dir, "journal");
  const [never, done] = [new Promise<void>(() => {}), Promise.resolve()];
  // As an earlier process that was killed: one entry committed, two not, and one that was being written.
  const killed = new LogJournal(journal);
  assert.ok(killed.hold(logOf("exec_committed", 1), done));
  assert.ok(killed.hold(logOf("exec_begun", 2, { status: "running" }), never));
  assert.ok(killed.hold(logOf("exec_begun", 2, { stdout: "its end" }), never));
  await done;
  writeFileSync(join(journal, "000000000009"), '{"execution_id":"exec_cut');
  assert.equal(readdirSync(journal).length, 3);
  await reopen({ journal: new LogJournal(journal) });
  await store.log.recover();
  assert.deepEqual(readdirSync(journal), []);
  assert.deepEqual(
    (await page()).logs.map(({ execution_id, stdout }) => [execution_id, stdout]),
    [["exec_begun", "its end"]],
  );
  await put(logOf("exec_new", 3));
  assert.deepEqual(await idsOf(), ["exec_new", "exec_begun"]);
  assert.deepEqual(readdirSync(journal), [], "a page waits for what is on its way");
});

test("what only the journal has is committed soon, or when the log is closed", async () => {
  const journal = join(dir, "journal");
  await reopen({ journal: new LogJournal(journal) });
  await put(...Array.from({ length: 150 }, (_, index) => logOf(`exec_${index}`, index)));
  assert.ok(readdirSync(journal).length > 0, "nothing waits for the disk");
  await until("all are committed", () => readdirSync(journal).length === 0);
  await put(logOf("exec_last", 200));
  assert.equal(readdirSync(journal).length, 1);
  await reopen();
  assert.deepEqual(readdirSync(journal), []);
  assert.deepEqual(await idsOf({ limit: 1 }), ["exec_last"]);
  assert.equal((await page()).total, 151);
});

test("with more on its way than the journal may hold, entries wait for the disk", async () => {
  const journal = new LogJournal(join(dir, "journal"));
  const never = new Promise<void>(() => {});
  let held = 0;
  while (held < 100_000 && journal.hold(logOf(`exec_${held}`, held), never)) held++;
  assert.equal(held, 1_000);
  assert.equal(readdirSync(join(dir, "journal")).length, held);
});
