/** Which ids a sandbox has, and where an account gets them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { mapOfRange } from "../../../../systemd/base/subordinate-ids.ts";
import { firstGap, nextFree } from "../../../../systemd/setup/subordinate-ids.ts";

const owner = "somebody";
const shared = { owner, first: 100_000, count: 65_536 };

test("a range shows root as its first id, the others behind it, and what nobody has on disk as the worker's own", () => {
  const ranges = [shared, { owner, first: 2_000_000, count: 3 * 65_536 }];
  assert.equal(mapOfRange(990, ranges, 0), "990 2000000 1\n100000 2000001 65535\n165535 990 1");
  assert.equal(mapOfRange(990, ranges, 2), "990 2131072 1\n100000 2131073 65535\n165535 990 1");
  assert.equal(mapOfRange(990, ranges, 3), undefined);
});

test("a range is whole in one block of ids, also in the first one", () => {
  assert.equal(mapOfRange(1, [{ owner, first: 100_000, count: 200_000 }], 0), "1 165536 1\n100000 165537 65535\n165535 1 1");
  assert.equal(
    mapOfRange(
      1,
      [
        { owner, first: 100_000, count: 200_000 },
        { owner, first: 900_000, count: 100_000 },
      ],
      2,
    ),
    undefined,
  );
  assert.equal(
    mapOfRange(
      1,
      [
        { owner, first: 100_000, count: 65_535 },
        { owner, first: 900_000, count: 200_000 },
      ],
      0,
    ),
    undefined,
  );
  assert.equal(mapOfRange(1, [], 0), undefined);
});

test("ids for sandboxes are those that nobody has, and those of accounts stay below them", () => {
  const first = 0x7000_0000;
  assert.equal(firstGap([shared], 1_000), first);
  assert.equal(firstGap([{ owner, first: first + 500, count: 10 }, shared, { owner, first, count: 100 }], 400), first + 100);
  assert.equal(firstGap([{ owner, first: first + 500, count: 10 }, shared, { owner, first, count: 100 }], 401), first + 510);
  assert.equal(firstGap([], 0x0ffe_0001), undefined);
  assert.equal(nextFree([shared, { owner, first, count: 1_000 }]), 165_536);
});
