/** Revoked keys are forgotten after their time, on a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createKey, forgetKey, hashKey, keysOf, revokedMax, revokeKey } from "../../../../gateway/accounts/keys.ts";
import { openRecords } from "../../../../gateway/accounts/records.ts";
import { RevokedKeys } from "../../../../gateway/accounts/revoked-keys.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { atEnd, fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";

const keepMs = 60_000;

const nats = await fixture(startNats());
const config = loadConfig({});
const records = await openRecords(await nats.connect(), config, quiet);
const other = await openRecords(await nats.connect(), config, quiet);
atEnd(() => records.stop());
atEnd(() => other.stop());

const sweeper = (isMine = true): RevokedKeys => new RevokedKeys(records, keepMs, () => isMine, quiet);

/** A key that was revoked so long ago, and had been used. */
async function revokedFor(accountId: string, ms: number): Promise<{ id: string; hash: string }> {
  const { record, apiKey } = await createKey(records, accountId, "key", 1_000);
  const hash = hashKey(apiKey);
  await records.keyUse.put(record.id, { used_at_ms: Date.now() });
  await revokeKey(records, record.id);
  await records.keys.change(hash, (key) => ({ ...key, revoked_at_ms: Date.now() - ms }));
  return { id: record.id, hash };
}

test("a key is forgotten with its use when its time is over, and no other key is", async () => {
  const account = newId("account");
  const old = await revokedFor(account, keepMs);
  const young = await revokedFor(account, keepMs / 2);
  const active = (await createKey(records, account, "active", 1_000)).record;
  await sweeper(false).turn();
  assert.equal(keysOf(records, account).length, 3, "only one gateway forgets");
  await sweeper().turn();
  assert.deepEqual(
    keysOf(records, account)
      .map(({ id }) => id)
      .sort(),
    [young.id, active.id].sort(),
  );
  assert.deepEqual([records.keyUse.get(old.id), await records.keys.read(old.hash)], [undefined, undefined]);
  assert.ok(records.keyUse.get(young.id));
  await other.keys.caughtUp();
  assert.equal(keysOf(other, account).length, 2, "other gateways know");
});

test("many are forgotten a slice at a time, while others come and go", async () => {
  const account = newId("account");
  const now = Date.now();
  const hashes = Array.from({ length: 250 }, (_, at) => hashKey(`${account} ${at}`));
  await Promise.all(
    hashes.map((hash) =>
      records.keys.put(hash, { id: newId("key"), account_id: account, name: "", prefix: "", created_at_ms: now, revoked_at_ms: now - 2 * keepMs }),
    ),
  );
  const sweep = sweeper();
  const left: number[] = [];
  for (let turn = 0; turn < 6; turn++) {
    await sweep.turn();
    left.push(keysOf(records, account).length);
    if (turn === 1) await createKey(records, account, "new", 1_000);
  }
  assert.ok((left[0] ?? 0) >= 150, `a turn forgets 100 at most: ${left}`);
  assert.equal(left.at(-1), 1, String(left));
});

test("an account that makes and revokes keys without end leaves a bounded number of them", async () => {
  const account = newId("account");
  const first = await revokedFor(account, 1_000);
  for (let made = 0; made < revokedMax + 5; made++) {
    const { record } = await createKey(records, account, `key ${made}`, 1);
    await revokeKey(records, record.id, account);
  }
  const left = keysOf(records, account);
  assert.equal(left.length, revokedMax);
  assert.ok(!left.some(({ id }) => id === first.id), "the oldest went first");
  assert.equal(left[0]?.name, `key ${revokedMax + 4}`);
  assert.equal(records.keyUse.get(first.id), undefined);
  for (const [hash, key] of [...records.keys.entries()]) if (key.account_id === account) await forgetKey(records, hash, key);
});
