/** How large volumes are made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Disk, firstSize, nextSize as nextSizeBy, type Size } from "../../../../systemd/volume/growth.ts";

const MiB = 1024 ** 2;
const GiB = 1024 ** 3;
const large = 1024 * GiB;
const disk = (freeBytes: number) => ({ freeBytes, floorBytes: 1 * GiB });
const nextSize = (size: Size, on: Disk, moreBytes = 1) => nextSizeBy(size, on, moreBytes);
const volume = (bytes: number, bytesMax = large) => ({ bytes, allocatedBytes: bytes, bytesMax });

test("a new volume is small, never larger than its setting, and leaves the floor of the disk free", () => {
  assert.equal(firstSize(large, disk(500 * GiB)), 4 * GiB);
  assert.equal(firstSize(2 * GiB, disk(500 * GiB)), 2 * GiB);
  assert.equal(firstSize(large, disk(3.5 * GiB)), 2.5 * GiB);
});

test("where less than a GiB is left there is none", () => {
  assert.equal(firstSize(large, disk(2 * GiB - 1)), undefined);
  assert.equal(firstSize(large, disk(0)), undefined);
});

test("it grows by a quarter, at least by 1 GiB, at most by 32 GiB", () => {
  assert.equal(nextSize(volume(2 * GiB), disk(500 * GiB)), 3 * GiB);
  assert.equal(nextSize(volume(40 * GiB), disk(500 * GiB)), 50 * GiB);
  assert.equal(nextSize(volume(400 * GiB), disk(500 * GiB)), 432 * GiB);
});

test("it grows by what is asked for if that is more, within the same bounds", () => {
  assert.equal(nextSize(volume(2 * GiB), disk(500 * GiB), 300 * GiB), 302 * GiB);
  assert.equal(nextSize(volume(2 * GiB, 100 * GiB), disk(500 * GiB), 300 * GiB), 100 * GiB);
  assert.equal(nextSize(volume(2 * GiB), disk(50 * GiB), 300 * GiB), 51 * GiB);
  assert.equal(nextSize(volume(2 * GiB), disk(500 * GiB), Number.MAX_SAFE_INTEGER), 501 * GiB);
});

test("it ends at its largest size", () => {
  assert.equal(nextSize(volume(9 * GiB, 10 * GiB), disk(500 * GiB)), 10 * GiB);
  assert.equal(nextSize(volume(10 * GiB, 10 * GiB), disk(500 * GiB)), "largest");
  assert.equal(nextSize(volume(10 * GiB, 5 * GiB), disk(500 * GiB)), "largest", "the setting was lowered");
});

test("it never promises what the disk cannot give above its floor, what it has promised before included", () => {
  assert.equal(nextSize(volume(4 * GiB), disk(1.5 * GiB)), 4.5 * GiB);
  assert.equal(nextSize(volume(4 * GiB), disk(1 * GiB + 63 * MiB)), "disk");
  assert.equal(nextSize({ ...volume(4 * GiB), allocatedBytes: 1 * GiB }, disk(4.5 * GiB)), 4.5 * GiB);
  assert.equal(nextSize({ ...volume(4 * GiB), allocatedBytes: 1 * GiB }, disk(4 * GiB)), "disk");
});

test("sizes are whole MiB", () => {
  assert.equal(nextSize(volume(4 * GiB), disk(1.5 * GiB + 12_345)), 4.5 * GiB);
});
