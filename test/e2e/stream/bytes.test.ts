/** execute_async: every byte arrives, in order, as text. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Api, collect } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make();

const python = (script: string): string => `python3 -c '${script}'`;
const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");

for (const step of [1, 2, 3, 4, 5, 7]) {
  test(`characters that are written in pieces of ${step} bytes arrive whole`, async () => {
    const text = "aß€😀\u0301z".repeat(20);
    const script = `import os,time\nd=bytes.fromhex("${Buffer.from(text).toString("hex")}")\nfor i in range(0,len(d),${step}):\n  os.write(1,d[i:i+${step}]); time.sleep(0.002)`;
    const { stdout, chunks } = await collect(await api.stream(id, python(script)));
    assert.equal(stdout, text);
    for (const { stdout: part = "" } of chunks) assert.ok(part.isWellFormed() && !part.includes("\ufffd"));
  });
}

test("bytes that are no UTF-8 become replacement characters, an unfinished character at the end as well", async () => {
  const { stdout, last } = await collect(await api.stream(id, "printf 'a\\377b\\300\\200c\\355\\240\\200d\\360\\237\\230'"));
  assert.equal(stdout, new TextDecoder().decode(Buffer.from([97, 0xff, 98, 0xc0, 0x80, 99, 0xed, 0xa0, 0x80, 100, 0xf0, 0x9f, 0x98])));
  assert.deepEqual(last, { exit_code: 0 });
});

test("15 MB of random bytes as one line of base64 arrive unchanged", async () => {
  const response = await api.stream(id, "head -c 15000000 /dev/urandom > /tmp/random; sha256sum < /tmp/random >&2; base64 -w 0 /tmp/random; rm /tmp/random");
  const { stdout, stderr, last } = await collect(response);
  assert.deepEqual(last, { exit_code: 0 });
  assert.equal(`${sha256(Buffer.from(stdout, "base64"))}  -\n`, stderr);
  assert.ok(!stdout.includes("\n"));
});

test("large outputs on both streams at once arrive complete and in order", async () => {
  const lines = 200_000;
  const script = `awk 'BEGIN { for (i = 0; i < ${lines}; i++) { print "out" i; print "err" i > "/dev/stderr" } }'`;
  const { stdout, stderr, last } = await collect(await api.stream(id, script));
  const expected = (word: string): string => `${Array.from({ length: lines }, (_, i) => word + i).join("\n")}\n`;
  assert.deepEqual(last, { exit_code: 0 });
  assert.equal(sha256(stdout), sha256(expected("out")));
  assert.equal(sha256(stderr), sha256(expected("err")));
});

test("twenty streams at once keep apart", async () => {
  const results = await Promise.all(Array.from({ length: 20 }, async (_, n) => collect(await api.stream(id, `yes line-${n} | head -n 20000; exit ${n}`))));
  for (const [n, { stdout, last }] of results.entries()) {
    assert.equal(stdout, `line-${n}\n`.repeat(20_000));
    assert.deepEqual(last, { exit_code: n });
  }
});
