/** Ranges of ids belong to one sandbox each, also when several workers share them and when one was killed. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Claims } from "../../../../../worker/runtime/ids/claims.ts";
import { rangesIn } from "../../../../../worker/runtime/ids/open.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";

test("a range has one sandbox until that is gone, whichever worker it is on", () => {
  using folder = temporaryFolder("claims");
  const open = (worker: string): Claims => new Claims(join(folder.path, "shared"), join(folder.path, worker), 3);
  const [one, other] = [open("one"), open("other")];
  assert.deepEqual([one.take("a"), other.take("b"), one.take("c"), other.take("d"), one.take("a")], [0, 1, 2, undefined, 0]);
  one.release("a");
  one.release("a");
  assert.equal(one.of("a"), undefined);
  assert.equal(other.take("d"), 0);
});

test("a range is passed on, and never free meanwhile", () => {
  using folder = temporaryFolder("claims");
  const open = (worker: string): Claims => new Claims(join(folder.path, "shared"), join(folder.path, worker), 2);
  const [one, other] = [open("one"), open("other")];
  one.take("a");
  one.pass("a", "b");
  one.pass("nobody", "c");
  assert.deepEqual([one.of("a"), one.of("b"), one.of("c")], [undefined, 0, undefined]);
  one.release("a");
  assert.deepEqual([other.take("x"), other.take("y")], [1, undefined]);
  one.release("b");
  assert.equal(other.take("y"), 0);
});

test("those of a worker that was killed are free, except for what the next process takes up again", () => {
  using folder = temporaryFolder("claims");
  const open = (worker: string): Claims => new Claims(join(folder.path, "shared"), join(folder.path, worker), 3);
  const killed = open("one");
  killed.take("a");
  killed.take("b");
  const next = open("one");
  next.retake("b", 1);
  assert.deepEqual([next.of("a"), next.of("b")], [undefined, 1]);
  const other = open("other");
  assert.deepEqual([other.take("x"), other.take("y"), other.take("z")], [0, 2, undefined]);
  rmSync(join(folder.path, "one"), { recursive: true });
  assert.equal(other.take("z"), 1, "the worker is gone for good");
});

test("what a sandbox had stays its own, though another has taken it meanwhile", () => {
  using folder = temporaryFolder("claims");
  const open = (worker: string): Claims => new Claims(join(folder.path, "shared"), join(folder.path, worker), 3);
  const other = open("other");
  other.take("x");
  const one = open("one");
  one.retake("a", 0);
  assert.equal(one.of("a"), 0);
  one.release("a");
  assert.equal(open("third").take("y"), 1, "the other's claim holds");
  one.retake("b", 3);
  assert.equal(one.of("b"), undefined, "there is no such range here");
});

test("ranges are those behind the ids that sandboxes share", () => {
  assert.equal(rangesIn("         0        981          1\n         1     427680      65536\n"), 0);
  assert.equal(rangesIn("0 981 1\n1 427680 65536\n65537 1879048192 131072\n"), 2);
  assert.equal(rangesIn("0 981 1\n1 100000 196607\n"), 1);
  assert.equal(rangesIn("0 0 4294967295\n"), 65_534);
});
