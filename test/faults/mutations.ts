/** Changes bytes a little, so that most of them stay as a valid message has them. */
import { between, oneOf, type Random } from "./plan.ts";

const changesMax = 4;
const piece = 64;
/** What has confused parsers before. */
const oddities = [
  "\0",
  "\r\n",
  "\n\n",
  "\r\n\r\n",
  "%00",
  "%ff",
  "\ud83d",
  "\u2028",
  "{",
  "]",
  '"',
  "\\u0000",
  "-1",
  "1e999",
  "9".repeat(30),
  "null",
  "..",
  "/",
];

type Change = (bytes: Buffer, at: number, random: Random) => Buffer;

const changes: readonly Change[] = [
  (bytes, at, random) => spliced(bytes, at, 1, Buffer.from([between(random, 0, 255)])),
  (bytes, at, random) => spliced(bytes, at, 1, Buffer.from([(bytes[at] ?? 0) ^ (1 << between(random, 0, 7))])),
  (bytes, at, random) => spliced(bytes, at, 0, Buffer.from(oneOf(random, oddities) ?? "")),
  (bytes, at, random) => spliced(bytes, at, between(random, 1, piece), Buffer.alloc(0)),
  (bytes, at, random) => spliced(bytes, at, 0, bytes.subarray(at, at + between(random, 1, piece))),
  (bytes, at, random) => spliced(bytes, at, 0, Buffer.alloc(between(random, 1, piece) ** 2, between(random, 0, 255))),
  (bytes, at) => bytes.subarray(0, at),
];

export function mutated(random: Random, bytes: Uint8Array): Buffer {
  let changed = Buffer.from(bytes);
  for (let left = between(random, 1, changesMax); left > 0; left--) {
    changed = Buffer.from(oneOf(random, changes)?.(changed, between(random, 0, Math.max(0, changed.length - 1)), random) ?? changed);
  }
  return changed;
}

const spliced = (bytes: Buffer, at: number, removed: number, added: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)]);
