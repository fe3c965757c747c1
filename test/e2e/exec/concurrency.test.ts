/** Many commands at once, and what deletion means for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type Chunk, chunksOf, collect, type ExecuteResult } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const executionsPerSandbox = 64;

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

test("64 commands run at once in a sandbox, the next one is told to come back, and a freed place is taken again", async () => {
  const id = await sandboxes.make();
  const mark = new Mark();
  const hangUps = Array.from({ length: executionsPerSandbox }, () => new AbortController());
  const call = (): Promise<{ status: number }> => api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" });
  try {
    const responses = await Promise.all(hangUps.map(({ signal }) => api.stream(id, "echo ready; exec sleep 600", { env: mark.env }, signal)));
    const firsts = await Promise.all(responses.map(async (response) => (await chunksOf(response).next()).value as Chunk));
    assert.deepEqual(new Set(firsts.map((chunk) => chunk.stdout)), new Set(["ready\n"]));
    expectError(await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }), "rate_limited", /64/);
    expectError(await api.call("POST", `/v1/sandboxes/${id}/execute_async`, { command: "true" }), "rate_limited", /64/);
    hangUps[0]?.abort();
    await until("a place is free", async () => (await call()).status === 200);
  } finally {
    for (const hangUp of hangUps) hangUp.abort();
  }
  await mark.gone();
});

test("100 commands at once in four sandboxes each get their own output and exit code", async () => {
  const ids = await Promise.all(Array.from({ length: 4 }, () => sandboxes.make()));
  const results = await Promise.all(
    Array.from({ length: 100 }, (_, n) => api.execute(ids[n % 4] as string, `echo out-$N; echo err-$N >&2; exit $((N % 50))`, { env: { N: String(n) } })),
  );
  for (const [n, { stdout, stderr, exit_code }] of results.entries()) assert.deepEqual([stdout, stderr, exit_code], [`out-${n}\n`, `err-${n}\n`, n % 50]);
});

test("commands of one sandbox are not disturbed by the deletion of others", async () => {
  const [kept, ...others] = await Promise.all(Array.from({ length: 3 }, () => sandboxes.make()));
  const running = collect(await api.stream(kept as string, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done"));
  await Promise.all(others.map((id) => api.delete(id)));
  const { stdout, last } = await running;
  assert.deepEqual([stdout, last], ["1\n2\n3\n4\n5\n6\n", { exit_code: 0 }]);
});

test("the deletion of a sandbox ends its commands with an error, their output so far included", async () => {
  const id = await sandboxes.make();
  const mark = new Mark();
  const response = await api.stream(id, "echo streamed; sleep 600", { env: mark.env });
  const lines = chunksOf(response);
  assert.deepEqual((await lines.next()).value, { stdout: "streamed\n" });
  const result = api.call<ExecuteResult>("POST", `/v1/sandboxes/${id}/execute`, {
    command: "echo kept; touch /tmp/runs; sleep 600",
    env: mark.env,
    timeout: 60,
  });
  await until("the command runs", async () => (await api.execute(id, "test -e /tmp/runs")).exit_code === 0);
  await api.delete(id);
  const { status, body } = await result;
  assert.deepEqual([status, body.status, body.exit_code, body.stdout], [200, "error", -1, "kept\n"]);
  assert.match(body.error ?? "", /deleted/);
  assert.deepEqual((await lines.next()).value, { error: body.error, code: "not_found", reason: "no_such_sandbox" });
  assert.equal((await lines.next()).done, true);
  assert.deepEqual(mark.living(), []);
  expectError(await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }), "not_found");
});
