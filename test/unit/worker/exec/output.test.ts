/** Output as lines for the client: decoding and caps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Parts } from "../../../../worker/exec/json-text.ts";
import { OutputStream } from "../../../../worker/exec/output.ts";

/** What the client reads when the bytes arrive in these pieces. */
function textOf(pieces: readonly Buffer[], keepBytes = Number.POSITIVE_INFINITY): { text: string; stream: OutputStream } {
  const stream = new OutputStream("stdout", keepBytes);
  const lineOf = (parts: Parts | undefined): string[] => (parts ? [Buffer.concat(parts).toString()] : []);
  const lines = [...pieces.flatMap((piece) => lineOf(stream.take(piece))), ...lineOf(stream.flush())];
  for (const line of lines) assert.match(line, /^\{"stdout":"[^\n]*"\}\n$/);
  return { text: lines.map((line) => (JSON.parse(line) as { stdout: string }).stdout).join(""), stream };
}

const whole = (bytes: Buffer): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Pseudo-random numbers below a bound, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("text is the same however its bytes are split in two", () => {
  const bytes = Buffer.from('\ufeffaß€😀e\u0301\u0000\n"\\\u2028z');
  for (let at = 0; at <= bytes.length; at++) assert.equal(textOf([bytes.subarray(0, at), bytes.subarray(at)]).text, whole(bytes));
});

test("invalid bytes give the same replacement characters however they are split", () => {
  const random = numbers(7);
  const interesting = [0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0x82, 0xed, 0xa0, 0xf0, 0x9f, 0x98, 0xf4, 0x90, 0xff];
  for (let round = 0; round < 5_000; round++) {
    const bytes = Buffer.from(Array.from({ length: 1 + random(9) }, () => interesting[random(interesting.length)] as number));
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = 1 + random(3);
      pieces.push(bytes.subarray(at, at + length));
      at += length;
    }
    assert.equal(textOf(pieces).text, whole(bytes), `${pieces.map((piece) => piece.toString("hex")).join(" ")}`);
  }
});

test("the kept output ends with a whole character, and all output is counted", () => {
  const bytes = Buffer.from("ab€€");
  for (const [keep, text] of [
    [0, ""],
    [2, "ab"],
    [3, "ab"],
    [4, "ab"],
    [5, "ab€"],
    [7, "ab€"],
  ] as const) {
    const { text: kept, stream } = textOf(
      [...bytes].map((byte) => Buffer.from([byte])),
      keep,
    );
    assert.deepEqual([kept, stream.bytes, stream.truncated], [text, 8, true]);
  }
  const { text, stream } = textOf([bytes], 8);
  assert.deepEqual([text, stream.bytes, stream.truncated], ["ab€€", 8, false]);
});

test("the preview is the first 4 KiB, without a broken character", () => {
  const { stream } = textOf([Buffer.from(`x${"€".repeat(2_000)}`)]);
  assert.equal(stream.preview.text, `x${"€".repeat(1_365)}`.slice(0, 1 + Math.floor(4_095 / 3)));
  assert.equal(stream.preview.truncated, true);
  assert.equal(textOf([Buffer.from("short")]).stream.preview.truncated, false);
});

test("no output gives no line", () => {
  const stream = new OutputStream("stderr", 10);
  assert.deepEqual([stream.take(Buffer.alloc(0)), stream.flush(), stream.bytes, stream.truncated], [undefined, undefined, 0, false]);
});

test("output goes nowhere once the client has what it may have, or is gone, and the log has its beginning", () => {
  const stream = new OutputStream("stdout", 10_000);
  const stages: boolean[][] = [];
  for (const bytes of [4_000, 96, 5_904, 1]) {
    stages.push([stream.isWanted(false), stream.isWanted(true)]);
    stream.take(Buffer.alloc(bytes, "x"));
  }
  assert.deepEqual(stages, [
    [true, true],
    [true, true],
    [true, false],
    [false, false],
  ]);
  const beforeIt = stream.bytes;
  stream.drop(1_000);
  assert.deepEqual([stream.bytes - beforeIt, stream.truncated, stream.preview.truncated, stream.preview.text.length], [1_000, true, true, 4_096]);
});
