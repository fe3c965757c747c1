/** The main job in one go, as the README tells it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type Chunk, chunksOf } from "../../helpers/api.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());

test("a sandbox is created, runs commands, streams, is listed and is gone after its deletion", async () => {
  const id = await api.create({ name: "smoke" });
  assert.deepEqual(await api.execute(id, "echo out; echo err >&2; exit 3").then(({ stdout, stderr, exit_code }) => ({ stdout, stderr, exit_code })), {
    stdout: "out\n",
    stderr: "err\n",
    exit_code: 3,
  });
  const chunks: Chunk[] = [];
  // The second line is written only when the first one has arrived.
  for await (const chunk of chunksOf(await api.stream(id, "echo 1; while [ ! -e /tmp/seen ]; do sleep 0.1; done; echo 2"))) {
    if (chunks.push(chunk) === 1) await api.execute(id, "touch /tmp/seen");
  }
  assert.deepEqual(chunks, [{ stdout: "1\n" }, { stdout: "2\n" }, { exit_code: 0 }]);
  await api.delete(id);
  assert.equal((await api.call("GET", `/v1/sandboxes/${id}`)).status, 404);
});

test("the answer of a streaming command begins although the command is quiet", async () => {
  const id = await api.create();
  const stop = new AbortController();
  const response = await api.stream(id, "sleep 1000", {}, stop.signal);
  assert.equal(response.headers.get("content-type"), "application/x-ndjson");
  stop.abort();
  await api.delete(id);
});

test("a path as long as paths may be fits into the query, escaped", async () => {
  const id = await api.create();
  const path = `/${"ä".repeat(2_000)}`;
  assert.equal((await api.call("GET", `/v1/sandboxes/${id}/download?path=${encodeURIComponent(path)}`)).status, 404);
  await api.delete(id);
});
