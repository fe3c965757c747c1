/** Frames of a line, however the bytes come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bareFrame, FrameReader, frameBytesMax, kinds, readStreamFrame, streamFrame } from "../../../../../shared/stream/line/frames.ts";
import { seededRandom } from "../../../../helpers/random.ts";

const sent = [
  streamFrame("st_1", [Buffer.from('{"seq":0}\n'), Buffer.from("hello")]).bytes,
  bareFrame(kinds.sync),
  streamFrame("s", []).bytes,
  streamFrame("st_01k9abcdefghijklmnopqrstuv", [Buffer.alloc(70_000, 7), Buffer.alloc(3, 1)]).bytes,
  bareFrame(kinds.taken),
];
const bodies = sent.map((frame) => frame.subarray(4));

function readAll(reader: FrameReader, pieces: Iterable<Buffer>): Buffer[] {
  const frames: Buffer[] = [];
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const found = reader.take(piece, at);
      at = found.at;
      if (found.frame) frames.push(found.frame);
    }
  }
  return frames;
}

function* cut(bytes: Buffer, size: () => number): Generator<Buffer> {
  for (let at = 0, next = 0; at < bytes.length; at += next) {
    next = size();
    yield bytes.subarray(at, at + next);
  }
}

test("frames come out whole wherever they are cut", () => {
  const all = Buffer.concat(sent);
  for (const size of [1, 2, 3, 4, 5, 6, 7, 11, 4_096, 65_536, all.length])
    assert.deepEqual(
      readAll(
        new FrameReader(),
        cut(all, () => size),
      ),
      bodies,
      `${size}`,
    );
  const random = seededRandom(17);
  for (let round = 0; round < 50; round++)
    assert.deepEqual(
      readAll(
        new FrameReader(),
        cut(all, () => 1 + Math.floor(random() * 9_000)),
      ),
      bodies,
    );
});

test("the memory of a frame is its own", () => {
  const all = Buffer.concat(sent);
  const [first] = readAll(new FrameReader(), [all]);
  all.fill(0);
  assert.deepEqual(first, bodies[0]);
});

test("a message comes out with the name of its stream", () => {
  const { streamId, message } = readStreamFrame(bodies[0] as Buffer);
  assert.deepEqual([streamId, message.toString()], ["st_1", '{"seq":0}\nhello']);
  assert.equal(streamFrame("st_1", [Buffer.from("ab"), Buffer.from("c")]).message.toString(), "abc");
});

test("a length that no frame has is refused before any memory is taken for it", () => {
  for (const length of [0, frameBytesMax + 1, 0x7fff_ffff, 0xffff_ffff]) {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(length);
    assert.throws(
      () =>
        readAll(
          new FrameReader(),
          cut(header, () => 1),
        ),
      { code: "internal_error" },
      `${length}`,
    );
  }
});

test("a frame that names no stream is refused", () => {
  for (const body of [[1], [1, 0], [1, 5, 97], [1, 65, ...Array.from({ length: 70 }, () => 97)]]) {
    assert.throws(() => readStreamFrame(Buffer.from(body)), { code: "internal_error" }, body.join());
  }
});

test("a message that is too large for a frame is refused", () => {
  assert.throws(() => streamFrame("st_1", [Buffer.alloc(frameBytesMax)]), { code: "payload_too_large" });
});
