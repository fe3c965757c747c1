/** Which sandboxes are ended when the host's disk is full: those that fill it, and no others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DiskFloor, shortageOf, type Writer } from "../../../../worker/usage/disk-floor.ts";

const MiB = 1024 ** 2;
const floor = 100 * MiB;
const room = { bytes: 500 * MiB, files: 50_000, filesMax: 100_000 };
const full = { ...room, bytes: 90 * MiB };

const writer = (mebibytes: number, more: Partial<Writer> & { files?: number } = {}): Writer => ({
  use: { bytes: mebibytes * MiB, files: more.files ?? 10 },
  measuredAtMs: 1,
  isActive: true,
  ...more,
});

/** A floor that has seen `before` while there was room. */
function floorAfter(before: Record<string, Writer>) {
  const keys = Object.fromEntries(Object.keys(before).map((name) => [name, { name }]));
  const disk = new DiskFloor<{ name: string }>();
  const look = (free: typeof room, writers: Record<string, Writer>, nowMs: number): string | undefined =>
    disk.look(free, floor, new Map(Object.entries(writers).map(([name, each]) => [keys[name] as { name: string }, each])), nowMs)?.name;
  assert.equal(look(room, before, 0), undefined);
  return look;
}

test("the sandbox that grew most is ended, however large others are", () => {
  const look = floorAfter({ large: writer(400), small: writer(10), asleep: writer(200) });
  const now = { large: writer(410, { measuredAtMs: 5 }), small: writer(60, { measuredAtMs: 5 }), asleep: writer(200, { measuredAtMs: 5 }) };
  assert.equal(look(full, now, 5), "small");
  // Use from before this is no reason any more.
  assert.equal(look(full, now, 6), undefined);
  assert.equal(look(full, { ...now, large: writer(420, { measuredAtMs: 7 }) }, 7), "large");
});

test("a sandbox that has not grown is not ended", () => {
  const look = floorAfter({ large: writer(400), asleep: writer(200) });
  for (const nowMs of [5, 5_000, 50_000]) assert.equal(look(full, { large: writer(400), asleep: writer(199) }, nowMs), undefined);
});

test("no sandbox is ended for a file or two when no inodes are left, or for use before the first check", () => {
  const look = floorAfter({ other: writer(0, { measuredAtMs: 0, files: 0 }), few: writer(10) });
  const writers = { few: writer(10, { files: 12, measuredAtMs: 9 }), other: writer(300, { measuredAtMs: 9 }) };
  assert.equal(look({ ...room, files: 0 }, writers, 9), undefined);
  assert.equal(look({ ...room, files: 0 }, { ...writers, other: writer(300, { measuredAtMs: 10, files: 5_000 }) }, 10), "other");
});

test("a sandbox that runs nothing is not ended", () => {
  const look = floorAfter({ idle: writer(10) });
  assert.equal(look(full, { idle: writer(300, { isActive: false }) }, 10_000), undefined);
});

test("before one is chosen, all have been measured again or had time to be", () => {
  const look = floorAfter({ one: writer(10), other: writer(10) });
  const now = { one: writer(20, { measuredAtMs: 100 }), other: writer(10) };
  assert.equal(look(full, now, 100), undefined);
  assert.equal(look(full, { ...now, other: writer(90, { measuredAtMs: 200 }) }, 200), "other");
  const again = floorAfter({ one: writer(10), other: writer(10) });
  assert.equal(again(full, now, 100), undefined);
  assert.equal(again(full, now, 5_000), "one");
});

test("files count like bytes", () => {
  const look = floorAfter({ many: writer(10), few: writer(10) });
  const writers = { many: writer(10, { files: 40_000, measuredAtMs: 9 }), few: writer(11, { measuredAtMs: 9 }) };
  assert.equal(look({ ...room, files: 1_000 }, writers, 9), "many");
});

test("a file system without an inode limit never runs out of inodes", () => {
  assert.equal(shortageOf({ bytes: 500 * MiB, files: 0, filesMax: 0 }, floor), undefined);
  assert.match(shortageOf({ ...room, files: 1_000 }, floor) ?? "", /inodes/);
  assert.match(shortageOf(full, floor) ?? "", /disk space/);
  assert.match(shortageOf(room, floor, { bytes: 450 * MiB, files: 1 }) ?? "", /disk space/);
  assert.match(shortageOf(room, floor, { bytes: 0, files: 49_000 }) ?? "", /inodes/);
});
