/** What is done about memory, for every wish. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeRefusal, decideMemory, type MemoryDecision, type MemoryWish, memoryWishes } from "../../../shared/memory.ts";

const why = "this worker cannot take the memory of sandboxes";

test("every wish has an outcome, with memory in reach and without", () => {
  const outcomes: Readonly<Record<MemoryWish, readonly [possible: MemoryDecision, refused: MemoryDecision | "throws"]>> = {
    require: [{ memory: true }, "throws"],
    prefer: [{ memory: true }, { memory: false, reason: why }],
    skip: [
      { memory: false, reason: undefined },
      { memory: false, reason: undefined },
    ],
  };
  for (const wish of memoryWishes) {
    const [possible, refused] = outcomes[wish];
    assert.deepEqual(decideMemory(wish, undefined), possible, wish);
    if (refused === "throws")
      assert.throws(() => decideMemory(wish, why), { code: "unprocessable", reason: "memory_unavailable", message: `memory is required, but ${why}` });
    else assert.deepEqual(decideMemory(wish, why), refused, wish);
  }
});

const had = { memory: 512, storage: 5, env_vars: { A: "1", B: "2" } };

test("processes continue with the settings that they had, and with more memory", () => {
  for (const gets of [had, { ...had, memory: 513 }, { ...had, env_vars: { B: "2", A: "1" } }, { ...had, image: undefined }, { ...had, isolation: "standard" }])
    assert.equal(changeRefusal(had, gets), undefined);
});

const changes: [what: string, gets: Parameters<typeof changeRefusal>[1], refusal: RegExp][] = [
  ["another image", { ...had, image: "default" }, /another image/],
  ["a variable more", { ...had, env_vars: { ...had.env_vars, C: "" } }, /other env_vars/],
  ["a variable less", { ...had, env_vars: { A: "1" } }, /other env_vars/],
  ["another value", { ...had, env_vars: { A: "1", B: "3" } }, /other env_vars/],
  ["another name", { ...had, env_vars: { A: "1", toString: "2" } }, /other env_vars/],
  ["more storage", { ...had, storage: 6 }, /other storage/],
  ["less storage", { ...had, storage: 4 }, /other storage/],
  ["less memory", { ...had, memory: 511 }, /less memory than they had \(512 MiB\)/],
  ["another isolation", { ...had, isolation: "strong" }, /another isolation/],
];
for (const [what, gets, refusal] of changes) {
  test(`processes do not continue with ${what}`, () => assert.match(changeRefusal(had, gets) ?? "", refusal));
}
