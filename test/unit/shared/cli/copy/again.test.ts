/** Standard input that is sent once more after a refusal: the same bytes, also where a reader left while it waited. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Again } from "../../../../../shared/cli/copy/upload.ts";
import { deferred } from "../../../../../shared/waiting.ts";

const pieces = ["one", "two", "three"].map((word) => new TextEncoder().encode(word));

async function* source(wait: Promise<unknown> = Promise.resolve()): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    await wait;
    yield piece;
  }
}

async function all(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const piece of bytes) text += new TextDecoder().decode(piece);
  return text;
}

test("what one has read the next reads again, from the first byte", async () => {
  const again = new Again(source());
  for await (const piece of again.read()) if (piece.length > 0) break;
  assert.equal(await all(again.read()), "onetwothree");
  assert.equal(await all(again.read()), "onetwothree");
});

test("one that left while it waited for more takes nothing away", async () => {
  const come = deferred<void>();
  const again = new Again(source(come.promise));
  const left = again.read().next();
  const next = all(again.read());
  come.resolve();
  await left;
  assert.equal(await next, "onetwothree");
});

test("no more than 16 MiB are kept: then it is sent once, and the second time says why not", async () => {
  const piece = new Uint8Array(1024 * 1024);
  async function* large(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < 40; count++) yield piece;
  }
  const again = new Again(large());
  let bytes = 0;
  for await (const { length } of again.read()) bytes += length;
  assert.equal(bytes, 40 * piece.length);
  await assert.rejects(all(again.read()), /too much of standard input has been read to restart/);
});
