import assert from "node:assert/strict";
import { test } from "node:test";
import { readPairs } from "../../../../shared/util/pairs.ts";

test("pairs are read in order, with percent-encoded values", () => {
  assert.deepEqual(readPairs("authorization=Basic%20YTpi=, x-a = 1 ,,b="), [
    ["authorization", "Basic YTpi="],
    ["x-a", "1"],
    ["b", ""],
  ]);
  assert.deepEqual(readPairs(""), []);
});

test("what is no pair makes the whole list invalid", () => {
  for (const text of ["a", "=1", "a=1,b", " =1", "a=%zz"]) assert.equal(readPairs(text), undefined, text);
});
