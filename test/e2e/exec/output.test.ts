/** execute: how much output is kept. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const keptBytes = 10 * 1024 * 1024;

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make();

test("output of exactly 10 MiB is whole and not called truncated", async () => {
  const result = await api.execute(id, `head -c ${keptBytes} /dev/zero | tr '\\0' x`);
  assert.equal(result.stdout, "x".repeat(keptBytes));
  assert.ok(!("stdout_truncated" in result) && !("stderr_truncated" in result));
});

test("a stream is cut at 10 MiB and says so, the other one is whole, and the command goes on", async () => {
  const result = await api.execute(id, `yes abcdefg | head -c ${2 * keptBytes}; echo small >&2; echo went-on > /tmp/end; exit 4`);
  assert.equal(result.stdout, "abcdefg\n".repeat(keptBytes / 8));
  assert.deepEqual([result.stdout_truncated, result.stderr, result.exit_code, "stderr_truncated" in result], [true, "small\n", 4, false]);
  assert.equal((await api.execute(id, "cat /tmp/end")).stdout, "went-on\n");
});

test("both streams can be cut, and the cut does not break a character", async () => {
  const result = await api.execute(id, `yes € | tr -d '\\n' | head -c ${keptBytes + 2} | tee /dev/stderr`);
  const whole = "€".repeat(Math.floor(keptBytes / 3));
  assert.equal(result.stdout, whole);
  assert.equal(result.stderr, whole);
  assert.deepEqual([result.stdout_truncated, result.stderr_truncated], [true, true]);
});

test("bytes that are no UTF-8 become replacement characters", async () => {
  assert.equal((await api.execute(id, "printf 'a\\377\\200b\\303'")).stdout, "a\ufffd\ufffdb\ufffd");
});

test("control characters and NUL come through", async () => {
  const all = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join("");
  assert.equal((await api.execute(id, "python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(128)))'")).stdout, all);
});

test("a timeout during endless output keeps what fits", async () => {
  // Long enough for a busy machine to fill what is kept.
  const result = await api.execute(id, "yes", { timeout: 6 });
  assert.deepEqual([result.status, result.exit_code, result.stdout_truncated], ["timeout", 124, true]);
  assert.equal(result.stdout.length, keptBytes);
});
