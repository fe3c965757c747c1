/** Questions to the terminal are found in output however it is cut, and left out of what is shown once more, with exact offsets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Output, Replay } from "../../../../../shared/client/session/output.ts";
import { QuestionFinder } from "../../../../../shared/client/session/questions.ts";
import { encodeOutput } from "../../../../helpers/output-frame.ts";
import { seededRandom } from "../../../../helpers/random.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (pieces: readonly { bytes: Uint8Array }[]): string => Buffer.concat(pieces.map((piece) => piece.bytes)).toString("utf8");

const questions = [
  ..."[c [0c [>c [>0c [=c [5n [6n [?6n [?996n [x [?25$p [4$p [>q [>0q [?u [?4m [1$w [1;1;1;1;1;1*y [14t [18t [14;2t [21t [?1;1;0S [#R Z".split(" "),
  "]10;?\u0007",
  "]11;?\u001b\\",
  "]4;1;?;2;?\u0007",
  "]52;c;?\u0007",
  "]21;foreground=?\u001b\\",
  "]60\u001b\\",
  "]1337;ReportCellSize\u0007",
  "]5522;type=read\u001b\\",
  "P+q544e;5247\u001b\\",
  "P$qm\u001b\\",
  "P$q q\u001b\\",
  "Ptmux;\u001b\u001b[c\u001b\\",
  "_Gi=31,s=1,v=1,a=q;AAAA\u001b\\",
  // Carried out and gone on with.
  "\n[6n",
  "[6\nn",
  "[\u007f>c",
].map((rest) => `\u001b${rest}`);
const alone = [...questions, "\u0005", "\u009b6n", "\u009d11;?\u009c", "\u0090$qm\u009c", "\u009a"];

const plain = [
  ..."[m [1;31m [2J [?25h [?1049h [>1u [<u [=1u [>4;2m [?1c [8;24;80t [22;0t [2;1S [3S [!p [1 q [r [s [u [4h D M 7 8 = > (B #8".split(" "),
  "]0;a title?\u0007",
  "]2;what?;no\u001b\\",
  "]11;#ffffff\u0007",
  "]8;;https://example.com/?a=b\u001b\\",
  "]52;c;aGVsbG8=\u0007",
  "]133;A\u001b\\",
  "Pq#0;2;0;0;0~-\u001b\\",
  "_Gi=1,q=2;AAAA\u001b\\",
  "]11;?\u0018",
  "[6\u0018n",
  "[6\u001b[m",
].map((rest) => `\u001b${rest}`);

/** What a finder leaves when the text comes in pieces of these sizes. */
function left(whole: string, sizeOf: () => number): string {
  const finder = new QuestionFinder();
  const all = bytes(whole);
  const kept: { bytes: Uint8Array }[] = [];
  for (let at = 0; at < all.length; ) {
    const size = Math.max(1, sizeOf());
    kept.push(...finder.read(all.subarray(at, at + size)).filter(({ isQuestion }) => !isQuestion));
    at += size;
  }
  return text([...kept, { bytes: finder.rest() }]);
}

test("each question is found, whole and byte by byte, and nothing beside it", () => {
  for (const question of alone) {
    assert.equal(
      left(`á${question}z`, () => 1_000),
      "áz",
      JSON.stringify(question),
    );
    assert.equal(
      left(`á${question}z`, () => 1),
      "áz",
      JSON.stringify(question),
    );
  }
});

test("what only looks like a question is kept", () => {
  for (const one of [...plain, "Â", "[6n", "?", "\u001b"]) {
    assert.equal(
      left(`á${one}z`, () => 1_000),
      `á${one}z`,
      JSON.stringify(one),
    );
    assert.equal(
      left(`á${one}z`, () => 1),
      `á${one}z`,
      JSON.stringify(one),
    );
  }
});

test("a sequence that does not end is held back only so far", () => {
  const long = `\u001b]0;${"x".repeat(20_000)}`;
  const finder = new QuestionFinder();
  assert.equal(text(finder.read(bytes(long))), long);
  assert.equal(finder.heldBytes, 0);
});

test("offsets of a replay stay exact, whatever is cut where, and what comes after it is untouched", () => {
  const next = seededRandom(7);
  for (let round = 0; round < 300; round++) {
    const all = Array.from({ length: 12 }, () => {
      const kind = Math.floor(next() * 3);
      const source = kind === 0 ? alone : kind === 1 ? plain : ["some text\r\n", "täxt", "日本"];
      return { isQuestion: kind === 0, text: source[Math.floor(next() * source.length)] as string };
    });
    const old = all.map((one) => one.text).join("");
    const fresh = "new\u001b[6n";
    const stream = bytes(old + fresh);
    const replay = new Replay(bytes(old).length);
    const given: { bytes: Uint8Array; offset: number }[] = [];
    for (let at = 0; at < stream.length; ) {
      const size = 1 + Math.floor(next() * 9);
      given.push(...replay.take({ stream: "stdout", bytes: stream.subarray(at, at + size), offset: at }));
      at += size;
    }
    for (const piece of given) assert.deepEqual(piece.bytes, stream.subarray(piece.offset, piece.offset + piece.bytes.length));
    const wanted = all.map((one) => (one.isQuestion ? "" : one.text)).join("");
    assert.equal(text(given), wanted + fresh);
    const last = given.at(-1);
    assert.equal((last?.offset ?? 0) + (last?.bytes.length ?? 0), stream.length);
  }
});

test("a replay of nothing but questions is acknowledged all the same", async () => {
  const question = bytes("\u001b[6n".repeat(1_000));
  const output = new Output(0, question.length, undefined);
  output.take(encodeOutput({ channel: 1, offset: 0, bytes: question }));
  const piece = await output.next();
  assert.deepEqual([piece?.bytes.length, piece?.offset], [0, question.length]);
  assert.equal(piece && output.taken(piece), question.length);
});

test("the beginning of a sequence at the end of a replay is given out, also before a gap and at the end", async () => {
  const output = new Output(0, 100, undefined);
  output.take(encodeOutput({ channel: 1, offset: 0, bytes: bytes("a\u001b[") }));
  output.gap(3, 50);
  output.take(encodeOutput({ channel: 1, offset: 50, bytes: bytes("b\u001b]0;") }));
  output.end({});
  const shown: string[] = [];
  for (let piece = await output.next(); piece; piece = await output.next()) shown.push(`${piece.offset}:${Buffer.from(piece.bytes).toString()}`);
  assert.deepEqual(shown, ["0:a", "1:\u001b[", "50:b", "51:\u001b]0;"]);
});
