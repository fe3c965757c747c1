/** The output of a synchronous execution, as it is kept and as JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OutputCollector } from "../../../../gateway/handlers/output-collector.ts";
import { Semaphore } from "../../../../shared/util/mutex.ts";

const line = (fields: object): string => `${JSON.stringify(fields)}\n`;

test("the pieces are the inside of a JSON string of the whole, and as long as was said", async () => {
  const parts = ["plain ", '"quoted"\\ ', "\u0000\u0001\u2028\u007f", "é😀\r\n\t", "\ufffd"];
  const collector = new OutputCollector(new Semaphore(1), 1);
  for (const part of parts) await collector.add(Buffer.from(line({ stdout: part }) + line({ stderr: part.toUpperCase() })));
  for (const [stream, text] of [
    ["stdout", parts.join("")],
    ["stderr", parts.join("").toUpperCase()],
  ] as const) {
    const json = [...collector.json(stream)].join("");
    assert.equal(`"${json}"`, JSON.stringify(text));
    assert.equal(collector.jsonBytes(stream), Buffer.byteLength(json));
  }
});

test("output that is not small waits until there is memory for it", async () => {
  const memory = new Semaphore(1);
  const release = await memory.acquire();
  const collector = new OutputCollector(memory, 1);
  const waiting = collector.add(Buffer.from(line({ stdout: "x".repeat(100_000) })));
  assert.equal(await Promise.race([waiting.then(() => "taken"), new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
  release();
  await waiting;
  assert.equal(collector.jsonBytes("stdout"), 100_000);
  collector.release();
});
