/** Tables keep their columns, whatever is in them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { alignColumns } from "../../../../shared/util/columns.ts";

test("columns are as wide as terminals show what is in them", () => {
  const wide = "\u65e5\u672c\u8a9e";
  const combined = "e\u0301te\u0301";
  const emoji = "\u{1f600}";
  const painted = "\u001b[31mred\u001b[39m";
  assert.deepEqual(
    alignColumns([
      [wide, "|"],
      [combined, "|"],
      [emoji, "|"],
      [painted, "|"],
      ["plain!!", "|"],
    ]),
    [`${wide}   |`, `${combined}      |`, `${emoji}       |`, `${painted}      |`, "plain!!  |"],
  );
});

test("numbers end on the right", () => {
  assert.deepEqual(
    alignColumns(
      [
        ["task", "n"],
        ["a", "1"],
        ["b", "100"],
      ],
      1,
    ),
    ["task    n", "a       1", "b     100"],
  );
});

test("rows may be of different lengths, and nothing stands behind the last column", () => {
  assert.deepEqual(alignColumns([["a"], ["bb", "", ""], ["c", "d"]]), ["a", "bb", "c   d"]);
  assert.deepEqual(alignColumns([]), []);
});
