import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isId, newId, shortOf } from "../../../../shared/util/ids.ts";

const prefixes = { sandbox: "sb_", snapshot: "snap_", execution: "exec_", session: "sess_", key: "key_", account: "acct_", request: "req_" } as const;
const kinds = Object.keys(prefixes) as (keyof typeof prefixes)[];

test("an id is the prefix of its kind and 26 URL-safe characters", () => {
  for (const kind of kinds) {
    const id = newId(kind);
    assert.match(id, new RegExp(`^${prefixes[kind]}[0-9a-hjkmnp-tv-z]{26}$`));
    assert.ok(isId(kind, id));
  }
});

test("an id of one kind is none of another", () => {
  for (const kind of kinds) for (const other of kinds) if (other !== kind) assert.ok(!isId(other, newId(kind)));
});

test("other texts are no ids", () => {
  for (const text of ["", "sb_", `sb_${"a".repeat(25)}`, `sb_${"a".repeat(27)}`, `sb_${"A".repeat(26)}`, `sb_${"a".repeat(25)}/`, `sb_${"a".repeat(25)}*`]) {
    assert.ok(!isId("sandbox", text), text);
  }
});

test("a hundred thousand ids are all different", () => {
  assert.equal(new Set(Array.from({ length: 100_000 }, () => newId("request"))).size, 100_000);
});

test("ids sort by the time they were made", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 20; i++) {
    ids.push(newId("sandbox"));
    await sleep(2);
  }
  assert.deepEqual([...ids].sort(), ids);
});

test("short forms of ids made together differ", () => {
  assert.equal(new Set(Array.from({ length: 1_000 }, () => shortOf(newId("sandbox")))).size, 1_000);
});

test("an id begins with the time it was made, in ten letters of base 32", () => {
  const letters = "0123456789abcdefghjkmnpqrstvwxyz";
  const before = Date.now();
  const time = [...newId("sandbox").slice("sb_".length).slice(0, 10)].reduce((ms, letter) => 32 * ms + letters.indexOf(letter), 0);
  assert.ok(time >= before && time <= Date.now());
});
