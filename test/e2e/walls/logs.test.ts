/** The log of what ran, against an account that fills it: others lose nothing, and what is kept stays readable. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts } from "../../helpers/accounts.ts";
import { type Api, collect } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

interface Row {
  readonly execution_id: string;
  readonly command: string;
  readonly command_truncated?: boolean;
  readonly command_bytes?: number;
  readonly status: string;
}

interface Logs {
  readonly logs: readonly Row[];
  readonly total: number;
  readonly next_cursor?: string;
}

/** Each is six bytes of JSON. */
const controlCharacters = "\u0001".repeat(130_500);
const pageBytesMax = 1_024 * 1_024;
/** What stands around the entries of a page, and is not counted. */
const frameBytesMax = 1_024;

const accounts = await fixture(Accounts.open(sharedStack()));
const [attacker, bystander] = (await Promise.all([accounts.make("attacker"), accounts.make("bystander")])).map(({ api }) => api) as [Api, Api];
const [id, bystanderId] = await Promise.all([attacker.create(), bystander.create()]);

const logs = async (api: Api, query = ""): Promise<Logs> => expectOk(await api.call<Logs>("GET", `/v1/sandboxes/logs${query}`));

/** All pages, each no larger than a page may be. */
async function walk(api: Api, query: string, first?: string): Promise<Logs[]> {
  const pages: Logs[] = [];
  for (let cursor = first; ; ) {
    const page = await logs(api, `?${query}${cursor === undefined ? "" : `&cursor=${cursor}`}`);
    assert.ok(Buffer.byteLength(JSON.stringify(page)) <= pageBytesMax + frameBytesMax, "a page is small");
    pages.push(page);
    if (page.next_cursor === undefined) return pages;
    cursor = page.next_cursor;
  }
}

test("ends the worker with eleven commands of 130,500 control characters in one answer of the log", async () => {
  const running = collect(await bystander.stream(bystanderId, "until test -e /tmp/go; do sleep 0.1; done; echo still here"));
  for (let count = 0; count < 11; count++) await attacker.execute(id, controlCharacters);
  for (const query of ["", "?limit=1000", `?sandbox_id=${id}`]) {
    const { logs: rows, total } = await logs(attacker, query);
    assert.deepEqual([rows.length, total], [11, 11]);
    for (const { command, command_truncated, command_bytes } of rows) {
      assert.deepEqual([command, command_truncated, command_bytes], [controlCharacters.slice(0, 4_096), true, 130_500]);
    }
  }
  await bystander.execute(bystanderId, "touch /tmp/go");
  const { stdout, last } = await running;
  assert.deepEqual([stdout, last?.exit_code], ["still here\n", 0], "the command of another account has gone on");
});

test("makes an answer too large with commands, folders and outputs of control characters", async () => {
  const folder = `/${"\u0001".repeat(250)}`.repeat(15);
  await attacker.execute(id, `mkdir -p '${folder}'`);
  const print = `head -c 5000 /dev/zero | tr '\\0' '\\001'; head -c 5000 /dev/zero | tr '\\0' '\\377' >&2 #${controlCharacters.slice(0, 100_000)}`;
  await Promise.all(Array.from({ length: 24 }, () => attacker.execute(id, print, { working_dir: folder })));
  await until("all have ended in the log", async () =>
    (await walk(attacker, "limit=1000")).every((page) => page.logs.every(({ status }) => status !== "running")),
  );
  const pages = await walk(attacker, "limit=1000");
  assert.ok(pages.length > 1);
  assert.deepEqual(new Set(pages.map(({ total }) => total)), new Set([36]));
  const ids = pages.flatMap((page) => page.logs.map(({ execution_id }) => execution_id));
  assert.deepEqual([ids.length, new Set(ids).size], [36, 36], "every entry comes once");
  const byTwo = (await walk(attacker, "limit=2")).flatMap((page) => page.logs.map(({ execution_id }) => execution_id));
  assert.deepEqual(byTwo, ids, "whatever the size of the pages");
});

test("reads another account's log with a cursor of its own, or asks with one that nobody gave", async () => {
  const { next_cursor } = await logs(attacker, "?limit=1");
  assert.ok(next_cursor);
  const own = new Set((await walk(attacker, "limit=1000")).flatMap((page) => page.logs.map(({ execution_id }) => execution_id)));
  const rows = (await walk(bystander, "limit=1&to=2099-01-01", next_cursor)).flatMap((page) => page.logs);
  assert.ok(rows.length > 0);
  for (const { execution_id } of rows) assert.ok(!own.has(execution_id));
  for (const cursor of ["x", "AAAA", "%00", "a".repeat(257), Buffer.from("1.2.3.exec_\0").toString("base64url")]) {
    expectError(await attacker.call("GET", `/v1/sandboxes/logs?cursor=${cursor}`), "invalid_request", /^cursor must be/);
  }
  assert.deepEqual(await logs(attacker, "?sandbox_id=%00%01%ff"), { logs: [], total: 0 });
});

test("keeps others waiting with forty readers of the whole log", async () => {
  const readers = Array.from({ length: 40 }, () => logs(attacker, "?limit=1000"));
  const results = await Promise.all(Array.from({ length: 5 }, (_, index) => bystander.execute(bystanderId, `echo ${index}`)));
  assert.deepEqual(
    results.map(({ stdout }) => stdout),
    ["0\n", "1\n", "2\n", "3\n", "4\n"],
  );
  for (const { total } of await Promise.all(readers)) assert.equal(total, 36);
});
