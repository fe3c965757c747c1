/** What accounts own, by account. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Owned } from "../../../../gateway/fleet/directory.ts";
import type { EntryMirror } from "../../../../gateway/fleet/entries.ts";
import { SandboxDirectory } from "../../../../gateway/fleet/sandboxes.ts";
import type { SandboxEntry } from "../../../../shared/bus/entries.ts";
import { newestFirst } from "../../../../shared/util/newest-first.ts";
import { entryOf as published } from "../../../../worker/sandboxes/registry.ts";
import { seededRandom } from "../../../helpers/random.ts";
import { recordOf } from "../../worker/fixtures/records.ts";

const entryOf = (id: string, account_id: string, created_at_ms: number): SandboxEntry => ({ ...published(recordOf(id)), account_id, created_at_ms });

test("each account has its own, newest first, as they come, change and go", () => {
  const owned = new Owned<SandboxEntry>();
  for (const [id, account, at] of [
    ["sb_1", "a", 1],
    ["sb_2", "b", 2],
    ["sb_3", "a", 3],
    ["sb_4", "a", 3],
  ] as const)
    owned.set(id, entryOf(id, account, at));
  const idsOf = (account: string): string[] => owned.of(account).map(({ id }) => id);
  assert.deepEqual([idsOf("a"), idsOf("b"), idsOf("c")], [["sb_4", "sb_3", "sb_1"], ["sb_2"], []]);
  assert.equal(owned.of("a"), owned.of("a"), "the list stays the same while nothing changes");
  owned.set("sb_3", undefined);
  owned.set("sb_1", { ...entryOf("sb_1", "a", 1), name: "changed" });
  owned.set("sb_unknown", undefined);
  assert.deepEqual(
    [idsOf("a"), owned.of("a")[1]?.name, [...owned.counts()]],
    [
      ["sb_4", "sb_1"],
      "changed",
      [
        ["a", 2],
        ["b", 1],
      ],
    ],
  );
  owned.set("sb_2", undefined);
  assert.deepEqual([idsOf("b"), [...owned.counts()]], [[], [["a", 2]]]);
});

test("a list that somebody has does not change, and the next one is in order, whatever comes, changes and goes", () => {
  const [owned, expected, random] = [new Owned<SandboxEntry>(), new Map<string, SandboxEntry>(), seededRandom(5)];
  const below = (count: number): number => Math.floor(random() * count);
  for (let step = 0; step < 2_000; step++) {
    const id = `sb_${below(60)}`;
    // Few times, so that many are equal.
    const entry = random() < 0.6 ? { ...entryOf(id, "a", expected.get(id)?.created_at_ms ?? below(10)), name: `name-${step}` } : undefined;
    const had = owned.of("a");
    const copy = [...had];
    owned.set(id, entry);
    if (entry) expected.set(id, entry);
    else expected.delete(id);
    assert.deepEqual(had, copy);
    if (below(3) === 0) assert.deepEqual(owned.of("a"), newestFirst([...expected.values()]));
  }
  assert.equal(owned.of("nobody"), owned.of("stranger"), "all that own nothing share one list");
});

test("a list of one account looks at nothing of others", () => {
  let looks = 0;
  const changed: ((id: string, entry: SandboxEntry | undefined) => void)[] = [];
  const entries = Array.from({ length: 1_000 }, (_, index) => {
    const entry = { ...entryOf(`sb_${index}`, "", index), account_id: `acct_${index % 100}` };
    const createdAtMs = (): number => {
      looks++;
      return index;
    };
    return Object.defineProperty(entry, "created_at_ms", { enumerable: true, get: createdAtMs });
  });
  // The part of a mirror that the directory reads.
  const mirror = { values: () => entries.values(), onChange: (listener: (typeof changed)[number]) => changed.push(listener) };
  const directory = new SandboxDirectory(mirror as unknown as EntryMirror<SandboxEntry>);
  for (const listener of changed) listener("sb_7", entries[7]);
  looks = 0;
  assert.equal(directory.ofAccount("acct_7").length, 10);
  assert.ok(looks > 0 && looks <= 100, `${looks} looks`);
});
