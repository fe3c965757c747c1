/** How much of all streams waits to be sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Outflow } from "../../../../shared/stream/outflow.ts";

const MiB = 1024 ** 2;
const piece = MiB / 16;

/** An outflow over a server that takes everything when it is told to. */
function opened() {
  const asked: PromiseWithResolvers<void>[] = [];
  const outflow = new Outflow(() => {
    const next = Promise.withResolvers<void>();
    asked.push(next);
    return next.promise;
  });
  const answer = async (how: "resolve" | "reject" = "resolve"): Promise<void> => {
    for (const one of asked.splice(0)) one[how]();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { outflow, asked, answer };
}

/** Streams that send pieces one after the other. @returns the names of who has sent, in order */
function sending(outflow: Outflow, streams: number, pieces: number, bytes = piece): string[] {
  const sent: string[] = [];
  for (let stream = 0; stream < streams; stream++) {
    void (async () => {
      for (let index = 0; index < pieces; index++) {
        const turn = outflow.turn();
        if (turn) await turn;
        outflow.sent(bytes);
        sent.push(String(stream));
      }
    })();
  }
  return sent;
}

const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("however many streams have something to send, little waits for the server, and all take turns", async () => {
  const { outflow, answer } = opened();
  const sent = sending(outflow, 100, 4);
  await turns();
  const atFirst = sent.length;
  assert.ok(atFirst * piece <= 2 * MiB + piece, `${atFirst} pieces wait`);
  for (let before = atFirst; sent.length < 400; before = sent.length) {
    await answer();
    assert.ok(sent.length > before, "it goes on");
    assert.ok((sent.length - before) * piece <= 2 * MiB + piece, `${sent.length - before} pieces wait`);
  }
  assert.equal(new Set(sent.slice(0, atFirst + 100)).size, 100, "those that wait have their turn one after the other");
});

test("streams that have little to send, or nothing any more, hold up none of the others", async () => {
  const { outflow, answer } = opened();
  const large = sending(outflow, 40, 1);
  const small = sending(outflow, 300, 1, 1);
  let quiet = 0;
  for (let index = 0; index < 200; index++) void outflow.turn()?.then(() => quiet++);
  const last = sending(outflow, 1, 1);
  for (let index = 0; index < 100 && last.length === 0; index++) await answer();
  assert.deepEqual([large.length, small.length, quiet, last.length], [40, 300, 200, 1]);
});

test("nobody waits for a server that is gone", async () => {
  const { outflow, answer } = opened();
  const sent = sending(outflow, 100, 1);
  await turns();
  assert.ok(sent.length < 100);
  outflow.reset();
  await answer("reject");
  assert.equal(sent.length, 100);
});
