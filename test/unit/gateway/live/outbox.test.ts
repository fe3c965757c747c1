/** What a client of a live session says, put together on its way to the worker. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Outbox } from "../../../../gateway/live/outbox.ts";
import { Pace } from "../../../../gateway/live/sockets.ts";
import type { ClientMessage } from "../../../../shared/schemas/sessions.ts";

/** Longer than the machine may keep a test from going on. */
const togetherMs = 500;

/** What was sent: messages, and input as text. */
class Sent {
  readonly all: (string | ClientMessage)[] = [];
  readonly box = new Outbox(togetherMs);

  open(): void {
    this.box.open({ push: (...pieces) => this.all.push(Buffer.concat(pieces).toString()), say: (message) => this.all.push(message) });
  }

  type(...texts: string[]): void {
    for (const text of texts) this.box.input(Buffer.from(text));
  }
}

const resize = (cols: number): ClientMessage => ({ type: "resize", cols, rows: 1 });
const ack = (offset: number): ClientMessage => ({ type: "ack", offset });
const signal = (name: string): ClientMessage => ({ type: "signal", signal: name });

test("what comes before the session has begun goes when it has, in order", () => {
  const sent = new Sent();
  sent.type("a", "b");
  sent.box.message(resize(3));
  sent.type("c");
  assert.deepEqual(sent.all, []);
  sent.open();
  assert.deepEqual(sent.all, ["ab", resize(3), "c"]);
});

test("the first message goes at once, those that follow go together", async () => {
  const sent = new Sent();
  sent.open();
  await sleep(2 * togetherMs);
  sent.type("x");
  assert.deepEqual(sent.all, ["x"]);
  sent.type(..."yz");
  sent.box.message({ type: "stdin_close" });
  sent.type("!");
  assert.deepEqual(sent.all, ["x"]);
  await sleep(2 * togetherMs);
  assert.deepEqual(sent.all, ["x", "yz", { type: "stdin_close" }, "!"]);
});

test("of sizes between input and of acknowledgements the last one goes, a pending signal goes once", () => {
  const sent = new Sent();
  sent.open();
  sent.type("begin");
  for (const message of [ack(1), resize(1), signal("INT"), resize(2), signal("INT"), signal("TERM"), ack(2)]) sent.box.message(message);
  sent.type("between");
  for (const message of [resize(3), signal("INT"), ack(3)]) sent.box.message(message);
  sent.box.close();
  assert.deepEqual(sent.all, ["begin", resize(2), signal("INT"), signal("TERM"), "between", resize(3), signal("INT"), ack(3)]);
});

test("an acknowledgement of much output goes at once, in place of those that wait", () => {
  const sent = new Sent();
  sent.open();
  sent.type("begin", "more");
  sent.box.message(ack(1_000));
  sent.box.message(ack(100_000));
  assert.deepEqual(sent.all, [ack(100_000)]);
  sent.box.message(ack(100_001));
  assert.equal(sent.all.length, 1);
  sent.box.close();
  assert.deepEqual(sent.all.slice(1), ["beginmore", ack(100_001)]);
});

test("what was said before the client went still goes, nothing after", async () => {
  const sent = new Sent();
  sent.open();
  sent.type("1", "2");
  sent.box.close();
  sent.type("3");
  await sleep(2 * togetherMs);
  assert.deepEqual(sent.all, ["12"]);
});

test("more than a client has to say before the session has begun is refused", () => {
  const sent = new Sent();
  for (let n = 0; n < 1_000; n++) sent.box.message(ack(n));
  assert.throws(() => sent.box.message(ack(1)), /at most 1000 messages/);
});

test("messages are counted for each socket and each key, the dear ones more, and only for a second", async () => {
  const pace = new Pace();
  /** How many of a message are let through. */
  const spend = (socket: object, key: string, { type }: ClientMessage): number => {
    for (let count = 0; ; count++) {
      try {
        pace.take(socket, key, type);
      } catch {
        return count;
      }
    }
  };
  const nextSecond = (): Promise<void> => sleep(1_000 - (performance.now() % 1_000) + 5);
  await nextSecond();
  const [flood, other, third] = [{}, {}, {}];
  assert.equal(spend(flood, "one", ack(1)), 2_500);
  assert.equal(spend(flood, "one", ack(1)), 0);
  assert.equal(spend(other, "one", ack(1)), 2_500);
  assert.equal(spend(third, "one", ack(1)), 0);
  assert.equal(spend({}, "two", resize(1)), 250);
  assert.equal(spend({}, "three", signal("INT")), 50);
  await nextSecond();
  assert.equal(spend(flood, "one", signal("INT")), 50);
});
