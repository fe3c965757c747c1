/** execute_async: when chunks arrive, and how a stream ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type Chunk, chunksOf, collect } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make({ env_vars: { COLOUR: "blue" } });

/** Shell text that waits until `touch` has made the file. */
const waitFor = (file: string): string => `until [ -e ${file} ]; do sleep 0.05; done`;
const touch = (file: string) => api.execute(id, `touch ${file}`);

async function next(lines: AsyncGenerator<Chunk>): Promise<Chunk | undefined> {
  return (await lines.next()).value as Chunk | undefined;
}

test("the answer's status arrives while the command is still quiet", async () => {
  const connection = await Connection.open(api.url);
  try {
    const body = JSON.stringify({ command: `${waitFor("/tmp/quiet")}; echo end` });
    connection.request("POST", `/v1/sandboxes/${id}/execute_async`, { "x-api-key": api.apiKey, "content-type": "application/json" }, body);
    await until("the answer begins", () => connection.unread.startsWith("HTTP/1.1 200 OK\r\n"));
    assert.ok(!connection.unread.includes("end"));
    await touch("/tmp/quiet");
    await until("the stream ends", () => connection.unread.endsWith("\r\n0\r\n\r\n"));
    assert.match(connection.unread, /"stdout":"end\\n".*"exit_code":0/s);
  } finally {
    connection.cut();
  }
});

test("a stream is NDJSON, and its answer has a request id", async () => {
  const response = await api.stream(id, "echo end");
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^application\/x-ndjson/);
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  assert.deepEqual((await collect(response)).chunks, [{ stdout: "end\n" }, { exit_code: 0 }]);
});

test("each chunk arrives before the next one is produced", async () => {
  const lines = chunksOf(await api.stream(id, `printf 1; ${waitFor("/tmp/1")}; printf 2 >&2; ${waitFor("/tmp/2")}; printf 3; ${waitFor("/tmp/3")}; exit 9`));
  assert.deepEqual(await next(lines), { stdout: "1" });
  await touch("/tmp/1");
  assert.deepEqual(await next(lines), { stderr: "2" });
  await touch("/tmp/2");
  assert.deepEqual(await next(lines), { stdout: "3" });
  await touch("/tmp/3");
  assert.deepEqual(await next(lines), { exit_code: 9 });
  assert.equal((await lines.next()).done, true);
});

test("a quiet command is not cut off", async () => {
  const { chunks } = await collect(await api.stream(id, "sleep 15; echo late"));
  assert.deepEqual(chunks, [{ stdout: "late\n" }, { exit_code: 0 }]);
});

test("a timeout ends the stream with exit code 124 after the output so far, and the whole tree is gone", async () => {
  const mark = new Mark();
  const response = await api.stream(id, "echo begun; setsid sleep 600 & sleep 600", { timeout: 6, env: mark.env });
  assert.deepEqual((await collect(response)).chunks, [{ stdout: "begun\n" }, { exit_code: 124 }]);
  assert.deepEqual(mark.living(), []);
});

test("a command without output and one killed by a signal end with their exit code only", async () => {
  assert.deepEqual((await collect(await api.stream(id, "true"))).chunks, [{ exit_code: 0 }]);
  assert.deepEqual((await collect(await api.stream(id, "kill -KILL $$"))).chunks, [{ exit_code: 137 }]);
});

test("env and working_dir mean the same as in execute", async () => {
  const { stdout } = await collect(await api.stream(id, "echo $COLOUR $SIZE; pwd", { env: { SIZE: "xl" }, working_dir: "/usr" }));
  assert.equal(stdout, "blue xl\n/usr\n");
});

test("what is refused is an error answer and no stream", async () => {
  const call = (body: Record<string, unknown>) => api.call("POST", `/v1/sandboxes/${id}/execute_async`, body);
  expectError(await call({ command: "ls", working_dir: "/no/such/dir" }), "unprocessable", /working_dir/);
  expectError(await call({ command: "x".repeat(131_073) }), "invalid_request", /131072/);
  expectError(await call({ command: "true", timeout: 3_601 }), "invalid_request", /timeout/);
  expectError(await call({ command: "true", timeout: 0 }), "invalid_request", /timeout/);
  expectError(await call({}), "invalid_request", /command/);
});

test("a background process does not hold up the end of a stream", async () => {
  const { last } = await collect(await api.stream(id, "yes & sleep 600 & sleep 0.3; exit 3"));
  assert.deepEqual(last, { exit_code: 3 });
  await api.execute(id, "pkill -KILL yes; pkill -KILL sleep");
});
