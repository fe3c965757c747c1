/** The output of a part as lines. */
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { readLines } from "../../../../systemd/supervisor/lines.ts";
import { until } from "../../../helpers/until.ts";

async function linesOf(...pieces: (string | Buffer)[]): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  let ended = false;
  readLines(stream, (line) => lines.push(line));
  stream.on("end", () => {
    ended = true;
  });
  for (const piece of pieces) stream.write(piece);
  stream.end();
  await until("the end", () => ended);
  return lines;
}

test("lines are those of the output, however it is cut into pieces", async () => {
  const [first, second] = [Buffer.from("ä").subarray(0, 1), Buffer.from("ä").subarray(1)];
  assert.deepEqual(await linesOf("one\ntw", "o\r\n\nth", first, second, "ree\nlast"), ["one", "two", "", "thäree", "last"]);
});

test("a line without an end is kept up to a bound, and the next one is whole", async () => {
  const lines = await linesOf(...Array.from({ length: 64 }, () => "x".repeat(64 * 1024)), "\nnext\n");
  assert.deepEqual(
    lines.map(({ length }) => length),
    [1024 * 1024, "next".length],
  );
});
