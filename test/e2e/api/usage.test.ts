/** status and logs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts } from "../../helpers/accounts.ts";
import { collect } from "../../helpers/api.ts";
import { expectError, expectOk, isoTime } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

interface Log extends Record<string, unknown> {
  readonly command: string;
  readonly execution_id: string;
  readonly request_id: string;
  readonly timestamp: string;
}

const accounts = await fixture(Accounts.open(sharedStack()));
const api = (await accounts.make()).api;
const id = await api.create({ name: "measured" });

const logs = async (query = "") => expectOk(await api.call<{ logs: Log[]; total: number }>("GET", `/v1/sandboxes/logs${query}`));
const status = async (query = "") => expectOk(await api.call("GET", `/v1/sandboxes/${id}/status${query}`));

test("status tells the present use and its history, with the types of the API", async () => {
  const { sandbox_name, timestamp, current, history, ...rest } = await status();
  assert.deepEqual([sandbox_name, rest], ["measured", {}]);
  assert.match(timestamp as string, isoTime);
  assert.deepEqual(Object.keys(current as object).sort(), ["cpu_percent", "disk_mb", "memory_mb", "memory_percent", "processes"]);
  const { cpu_percent, memory_percent, memory_mb, disk_mb, processes } = current as Record<string, number>;
  for (const percent of [cpu_percent, memory_percent]) assert.ok(percent !== undefined && percent >= 0 && percent <= 100);
  assert.ok(Number(memory_mb) >= 0 && Number(disk_mb) >= 0 && Number.isInteger(processes));
  assert.ok(Array.isArray(history));
});

test("status sees what a sandbox writes and runs", async () => {
  const { body } = await api.stream(id, "head -c 20M /dev/zero > /root/file; echo written; sleep 60");
  const current = async () => (await status()).current as Record<string, number>;
  await until("the file is counted", async () => Number((await current()).disk_mb) >= 19);
  await until("the command is counted", async () => Number((await current()).processes) >= 2);
  await body?.cancel();
});

test("status brings a sample every ten seconds, within the time that was asked for", async () => {
  await until("there is a sample", async () => ((await status()).history as unknown[]).length > 0);
  const { history } = (await status()) as { history: Record<string, unknown>[] };
  for (const sample of history) {
    assert.deepEqual(Object.keys(sample).sort(), ["cpu_percent", "memory_mb", "timestamp"]);
    assert.match(sample.timestamp as string, isoTime);
  }
  assert.deepEqual((await status("?to=2020-01-01T00:00:00Z")).history, []);
  assert.deepEqual((await status("?from=2099-01-01&to=2099-01-02")).history, []);
});

test("a log entry tells the whole call, newest first, also of streams and failures", async () => {
  const first = await api.call("POST", `/v1/sandboxes/${id}/execute`, {
    command: "echo out; echo err >&2; exit 3",
    working_dir: "/tmp",
    env: { SECRET: "hidden" },
  });
  await collect(await api.stream(id, "echo streamed"));
  await api.execute(id, "sleep 5", { timeout: 1 });
  await until("all three are logged", async () => (await logs(`?sandbox_id=${id}&limit=3`)).logs.every((entry) => entry.status !== "running"));
  const [timedOut, streamed, failed] = (await logs(`?sandbox_id=${id}`)).logs;
  assert.ok(timedOut && streamed && failed);
  const { execution_time_ms, timestamp, ...rest } = failed;
  assert.deepEqual(rest, {
    request_id: first.headers.get("x-request-id"),
    execution_id: first.body.id,
    sandbox_id: id,
    command: "echo out; echo err >&2; exit 3",
    working_dir: "/tmp",
    source: "sync",
    status: "completed",
    exit_code: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
  assert.match(timestamp, isoTime);
  assert.ok(Number.isInteger(execution_time_ms));
  assert.deepEqual([streamed.source, streamed.status, streamed.exit_code, streamed.stdout], ["stream", "completed", 0, "streamed\n"]);
  assert.deepEqual([timedOut.status, timedOut.exit_code], ["timeout", 124]);
  assert.ok(!JSON.stringify(failed).includes("hidden"), "the variables of a call are not logged");
});

test("outputs in the log are cut at 4 KiB and say so", async () => {
  await api.execute(id, "head -c 5000 /dev/zero | tr '\\0' x; head -c 4096 /dev/zero | tr '\\0' y >&2");
  const newest = async () => (await logs(`?sandbox_id=${id}&limit=1`)).logs[0];
  await until("the command is logged whole", async () => (await newest())?.status === "completed");
  const entry = await newest();
  assert.equal(entry?.stdout, "x".repeat(4_096));
  assert.equal(entry?.stdout_truncated, true);
  assert.equal(entry?.stderr, "y".repeat(4_096));
  assert.equal("stderr_truncated" in (entry ?? {}), false);
});

test("logs are chosen by sandbox, time and limit, and total counts all of them", async () => {
  const other = await api.create();
  for (const word of ["one", "two", "three"]) await api.execute(other, `echo ${word}`);
  const { logs: two, total } = await logs(`?sandbox_id=${other}&limit=2`);
  assert.deepEqual([two.map(({ command }) => command), total], [["echo three", "echo two"], 3]);
  const newest = two[0]?.timestamp ?? "";
  const before = new Date(Date.parse(newest) - 1).toISOString();
  assert.ok(!(await logs(`?sandbox_id=${other}&to=${before}`)).logs.some(({ timestamp }) => timestamp === newest));
  assert.ok((await logs(`?sandbox_id=${other}&from=${newest}`)).logs.some(({ timestamp }) => timestamp === newest));
  assert.deepEqual(await logs(`?sandbox_id=${other}&to=2020-01-01T00:00:00Z`), { logs: [], total: 0 });
  assert.deepEqual(await logs("?sandbox_id=sb_none"), { logs: [], total: 0 });
  assert.ok((await logs()).total > total, "without sandbox_id the whole account's");
  await api.delete(other);
  assert.equal((await logs(`?sandbox_id=${other}`)).total, 3, "the log outlives the sandbox");
});

for (const [query, message] of [
  ["limit=0", /^limit must be between 1 and 1000/],
  ["limit=1001", /^limit must be between 1 and 1000/],
  ["limit=all", /^limit must be/],
  ["from=yesterday", /^from must be an ISO 8601 time/],
  ["to=1700000000", /^to must be an ISO 8601 time/],
  ["from=2026-13-45T00:00:00Z", /^from must be an ISO 8601 time/],
  ["from=2026-01-02&to=2026-01-01", /^from must not be later than to$/],
  ["sandbox_id=", /^sandbox_id must be a string of 1 to 64/],
] as const) {
  test(`logs refuse ${query}`, async () => void expectError(await api.call("GET", `/v1/sandboxes/logs?${query}`), "invalid_request", message));
}

test("status refuses times that are none", async () => {
  expectError(await api.call("GET", `/v1/sandboxes/${id}/status?from=x`), "invalid_request", /^from must be an ISO 8601 time/);
  expectError(await api.call("GET", `/v1/sandboxes/${id}/status?from=2026-01-02&to=2026-01-01`), "invalid_request", /^from must not be later/);
});
