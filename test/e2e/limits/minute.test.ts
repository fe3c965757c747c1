/** A key that is used up, over a whole minute. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Accounts } from "../../helpers/accounts.ts";
import { fixture } from "../../helpers/fixture.ts";
import { spend } from "../../helpers/limited.ts";
import { sharedStack } from "../../helpers/shared.ts";

const accounts = await fixture(Accounts.open(sharedStack()));

test("calls come back a minute after they were made, each at its time, and not before the time that a refusal names", async () => {
  const account = await accounts.make("minute");
  const api = await account.addKey({ limits: { requests_per_minute: 3 } });
  const beganMs = performance.now();
  assert.equal((await spend([api], 1)).admitted, 1);
  await sleep(10_000);
  const { admitted, refused } = await spend([api], 4);
  assert.equal(admitted, 2);
  const waitS = Number(refused[0]?.headers.get("retry-after"));
  assert.ok(waitS > 0 && 1_000 * waitS <= 60_000 - 9_000, `${waitS}`);
  await sleep(1_000 * waitS);
  assert.equal((await spend([api], 3)).admitted, 1, "the others were made later");
  assert.ok(performance.now() - beganMs >= 60_000);
});
