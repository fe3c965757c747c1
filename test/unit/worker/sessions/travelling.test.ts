import assert from "node:assert/strict";
import { test } from "node:test";
import type { CarriedSession } from "../../../../worker/sessions/carried.ts";
import { sessionsOf, withSessions } from "../../../../worker/sessions/travelling.ts";

const session: CarriedSession = {
  session_id: "sess_01m8d3d8gnr66gb122af01jyj9",
  command: "top",
  terminal: { cols: 80, rows: 24 },
  detach_ms: 1000,
  keeper: 12,
  output: Buffer.from("a secret on the screen").toString("base64"),
};
const image = Buffer.from("what only helpers read");

/** In pieces of so many bytes. */
async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

async function all(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const found: Uint8Array[] = [];
  for await (const part of parts) found.push(part);
  return Buffer.concat(found);
}

for (const size of [1, 7, 10_000]) {
  test(`sessions come in front of an image, without what they have shown: in pieces of ${size} bytes`, async () => {
    const sent = await all(withSessions([session], pieces(image, size)));
    assert.ok(!sent.includes(session.output));
    const { sessions, rest } = await sessionsOf(pieces(sent, size));
    assert.deepEqual(sessions, [{ ...session, output: "" }]);
    assert.deepEqual(await all(rest), image);
  });
}

test("what does not begin like that is refused", async () => {
  const length = (bytes: number): Buffer => Buffer.from(Uint32Array.of(bytes).buffer).reverse();
  const wrong = [Buffer.alloc(0), length(5), Buffer.concat([length(2), Buffer.from("{}")]), Buffer.concat([length(3), Buffer.from("[1]")]), length(2 ** 31)];
  for (const bytes of wrong) await assert.rejects(sessionsOf(pieces(bytes, 100)), /no image of memory/);
});
