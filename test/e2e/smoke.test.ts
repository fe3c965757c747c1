/** The main job in one go, as the README tells it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, collect } from "../helpers/api.ts";
import { sharedStack } from "../helpers/shared.ts";

const api = new Api(sharedStack());

test("a sandbox is created, runs commands, streams, is listed and is gone after its deletion", async () => {
  const id = await api.create({ name: "smoke" });
  assert.deepEqual(await api.execute(id, "echo out; echo err >&2; exit 3").then(({ stdout, stderr, exit_code }) => ({ stdout, stderr, exit_code })), {
    stdout: "out\n",
    stderr: "err\n",
    exit_code: 3,
  });
  assert.deepEqual((await collect(await api.stream(id, "echo 1; sleep 0.2; echo 2"))).chunks, [{ stdout: "1\n" }, { stdout: "2\n" }, { exit_code: 0 }]);
  await api.delete(id);
  assert.equal((await api.call("GET", `/v1/sandboxes/${id}`)).status, 404);
});
