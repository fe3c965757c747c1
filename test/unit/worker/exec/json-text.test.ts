/** Output as JSON text: byte for byte what `JSON.stringify` makes of what a decoder makes of it. */
import assert from "node:assert/strict";
import { StringDecoder } from "node:string_decoder";
import { test } from "node:test";
import { JsonText, type Parts } from "../../../../worker/exec/json-text.ts";
import { seededRandom } from "../../../helpers/random.ts";

function linesOf(pieces: readonly Buffer[]): { made: string[]; wanted: string[] } {
  const text = new JsonText("stdout");
  const decoder = new StringDecoder("utf8");
  const line = (decoded: string): string[] => (decoded ? [`${JSON.stringify({ stdout: decoded })}\n`] : []);
  // At once: the memory of the parts is used again.
  const whole = (parts: Parts | undefined): string[] => (parts ? [Buffer.concat(parts).toString()] : []);
  const made = [...pieces.flatMap((piece) => whole(text.take(piece))), ...whole(text.end())];
  return { made, wanted: [...pieces.flatMap((piece) => line(decoder.write(piece))), ...line(decoder.end())] };
}

function assertSame(pieces: readonly Buffer[]): void {
  const { made, wanted } = linesOf(pieces);
  assert.deepEqual(made, wanted, pieces.map((piece) => piece.toString("hex")).join(" "));
}

test("every byte by itself, and each two after one another, also in two pieces", () => {
  for (let first = 0; first < 256; first++) {
    assertSame([Buffer.from([first])]);
    for (let second = 0; second < 256; second++) {
      assertSame([Buffer.from([first, second])]);
      assertSame([Buffer.from([first]), Buffer.from([second])]);
    }
  }
});

test("whatever comes, however it is cut", () => {
  const random = seededRandom(5);
  const below = (bound: number): number => Math.floor(random() * bound);
  const interesting = [
    0x41, 0x0a, 0x22, 0x5c, 0x00, 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xf0, 0x9f, 0x98, 0x80, 0xf4, 0x90, 0xf8, 0xff,
  ];
  const parts = ["a", "\n", '"', "\\", "é", "€", "😀", "\u0001", "\u2028"].map((text) => Buffer.from(text));
  for (let round = 0; round < 20_000; round++) {
    const bytes = Buffer.concat(
      Array.from({ length: 1 + below(8) }, () =>
        below(2) ? (parts[below(parts.length)] as Buffer) : Buffer.from([interesting[below(interesting.length)] as number]),
      ),
    );
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += pieces.at(-1)?.length ?? 0) pieces.push(bytes.subarray(at, at + 1 + below(5)));
    assertSame(pieces);
  }
});

test("long pieces, also where every byte becomes six", () => {
  assertSame([Buffer.alloc(200_000, 1), Buffer.alloc(65_536, "x"), Buffer.from("€".repeat(30_000)).subarray(0, 65_536)]);
});

test("a byte that is escaped, anywhere in a long piece, wherever that begins in memory", () => {
  for (const byte of [0x00, 0x09, 0x0a, 0x1f, 0x22, 0x5c, 0x20, 0x21, 0x5b, 0x7f]) {
    for (let at = 0; at < 300; at++) {
      const memory = Buffer.alloc(304, "x");
      const piece = memory.subarray(at % 4, (at % 4) + 300);
      piece[at] = byte;
      assertSame([piece]);
    }
  }
  assertSame([Buffer.from("é".repeat(200)), Buffer.from("€€".repeat(100)), Buffer.from(`${"😀".repeat(100)}\n`)]);
});
