/** When the volume is made larger. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SandgateError } from "../../../../shared/errors.ts";
import { createLogger } from "../../../../shared/util/log.ts";
import { VolumeGrowth } from "../../../../worker/usage/volume-growth.ts";

const GiB = 1024 ** 3;
const floorBytes = GiB;
const log = createLogger("worker", "silent");

test("it grows before sandboxes could fill it with what they may write, one step at a time", async () => {
  const growth = new VolumeGrowth(floorBytes, log);
  const asked: number[] = [];
  let step = Promise.withResolvers<void>();
  await growth.keepAhead(0, 0);
  growth.growBy((moreBytes) => {
    asked.push(moreBytes);
    return step.promise;
  });
  await growth.keepAhead(12 * GiB, 10 * GiB);
  assert.deepEqual(asked, []);
  const waiting = [1, 2, 3].map(() => growth.keepAhead(12 * GiB - 1, 10 * GiB));
  assert.equal(asked.length, 1);
  step.resolve();
  await Promise.all(waiting);
  step = Promise.withResolvers();
  step.resolve();
  await growth.keepAhead(10 * GiB, 100 * GiB);
  assert.equal(asked.length, 2);
  assert.ok(asked[1] !== undefined && asked[1] >= 92 * GiB, "one step is enough");
  assert.equal(growth.isRefused, false);
});

test("after a refusal it rests", async () => {
  const growth = new VolumeGrowth(floorBytes, log);
  let tries = 0;
  growth.growBy(() => {
    tries++;
    return Promise.reject(new Error("no room"));
  });
  for (let look = 0; look < 3; look++) await growth.keepAhead(0, 0);
  assert.equal(tries, 1);
  assert.equal(growth.isRefused, true);
});

test("what a helper could not end that was lost meanwhile is asked of the next one, once", async () => {
  const growth = new VolumeGrowth(floorBytes, log);
  const lost = () => Promise.reject(new SandgateError("unavailable", "the helper is gone"));
  const answers = [lost, () => Promise.resolve(), lost, lost];
  growth.growBy(() => (answers.shift() ?? assert.fail("asked too often"))());
  await growth.keepAhead(0, 0);
  assert.deepEqual([answers.length, growth.isRefused], [2, false]);
  await growth.keepAhead(0, 0);
  assert.deepEqual([answers.length, growth.isRefused], [0, true]);
});
