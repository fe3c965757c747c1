/** When the volume is made larger. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "../../../../shared/util/log.ts";
import { VolumeGrowth } from "../../../../worker/usage/volume-growth.ts";

const GiB = 1024 ** 3;
const floorBytes = GiB;
const log = createLogger("worker", "silent");
const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("it grows before its floor is reached, one step at a time", async () => {
  const growth = new VolumeGrowth(floorBytes, log);
  const steps: PromiseWithResolvers<void>[] = [];
  growth.consider(0);
  growth.growBy(() => {
    const step = Promise.withResolvers<void>();
    steps.push(step);
    return step.promise;
  });
  growth.consider(2 * GiB);
  assert.equal(steps.length, 0);
  for (let look = 0; look < 3; look++) growth.consider(2 * GiB - 1);
  assert.equal(steps.length, 1);
  steps[0]?.resolve();
  await later();
  growth.consider(GiB);
  assert.equal(steps.length, 2);
  assert.equal(growth.isRefused, false);
});

test("after a refusal it rests", async () => {
  const growth = new VolumeGrowth(floorBytes, log);
  let tries = 0;
  growth.growBy(() => {
    tries++;
    return Promise.reject(new Error("no room"));
  });
  for (let look = 0; look < 3; look++) {
    growth.consider(0);
    await later();
  }
  assert.equal(tries, 1);
  assert.equal(growth.isRefused, true);
});
