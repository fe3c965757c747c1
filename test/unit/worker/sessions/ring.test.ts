/** The output that a session keeps, compared with the simplest implementation that keeps all of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { OutputChannel } from "../../../../shared/stream/session/protocol.ts";
import { OutputRing } from "../../../../worker/sessions/ring.ts";
import { seededRandom } from "../../../helpers/random.ts";

/** Everything from an offset on: each byte with its channel. */
function readAll(ring: OutputRing, from: number, pieceMax: number): Buffer {
  const pieces: Buffer[] = [];
  for (let offset = from; offset < ring.end; ) {
    const piece = ring.read(offset, pieceMax);
    assert.equal(piece.offset, offset);
    assert.ok(piece.bytes.length > 0 && piece.bytes.length <= pieceMax);
    pieces.push(marked(piece.channel, piece.bytes));
    offset += piece.bytes.length;
  }
  return Buffer.concat(pieces);
}

function marked(channel: OutputChannel, bytes: Uint8Array): Buffer {
  const pairs = Buffer.alloc(2 * bytes.length, channel);
  for (let index = 0; index < bytes.length; index++) pairs[2 * index + 1] = bytes[index] as number;
  return pairs;
}

test("the end of the output is kept, on the channels on which it was written", () => {
  const random = seededRandom(7);
  for (const bytesMax of [1, 10, 5_000, 20_000]) {
    const ring = new OutputRing(bytesMax);
    let all = Buffer.alloc(0);
    for (let round = 0; round < 200; round++) {
      const channel: OutputChannel = random() < 0.5 ? 1 : 2;
      const chunk = Uint8Array.from({ length: Math.floor(random() ** 4 * 2 * bytesMax) }, () => Math.floor(random() * 256));
      ring.append(channel, chunk);
      all = Buffer.concat([all, marked(channel, chunk)]);
      assert.equal(2 * ring.end, all.length);
      assert.equal(ring.end - ring.start <= bytesMax, true);
      if (round % 10 > 0) continue;
      assert.ok(readAll(ring, ring.start, 1 + Math.floor(random() * 3_000)).equals(all.subarray(2 * ring.start)));
      const middle = ring.start + Math.floor(random() * (ring.end - ring.start));
      assert.ok(readAll(ring, middle, 100_000).equals(all.subarray(2 * middle)));
    }
    assert.ok(ring.start > 0 && ring.start <= Math.max(0, ring.end - bytesMax) + 4_096, `${ring.start} of ${ring.end}`);
  }
});

test("a program that changes channels with every byte does not make the ring grow", () => {
  const ring = new OutputRing(1024 * 1024);
  for (let index = 0; index < 100_000; index++) ring.append(index % 2 ? 1 : 2, Uint8Array.of(index % 256));
  assert.equal(ring.end, 100_000);
  assert.equal(ring.end - ring.start, 16 * 1024);
  const expected = Array.from({ length: ring.end - ring.start }, (_, index) => [(ring.start + index) % 2 ? 1 : 2, (ring.start + index) % 256]).flat();
  assert.ok(readAll(ring, ring.start, 10).equals(Buffer.from(expected)));
});
