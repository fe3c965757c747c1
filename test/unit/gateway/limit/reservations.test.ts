/** Places for sandboxes, reserved through several gateways over a real nats-server. The directory is written as a worker would. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Reservation } from "../../../../gateway/limit/reservations.ts";
import { SandboxEntry } from "../../../../shared/bus/entries.ts";
import { BucketWriter } from "../../../../shared/bus/kv.ts";
import { buckets, entryKey } from "../../../../shared/bus/subjects.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import { checker } from "../../../../shared/schemas/validate.ts";
import { newId } from "../../../../shared/util/ids.ts";
import { acquainted, keyOf, TestGateway } from "../../../helpers/gateways.ts";
import { startNats, type TestNats } from "../../../helpers/nats.ts";
import { until } from "../../../helpers/until.ts";

let nats: TestNats;
let gateways: [TestGateway, TestGateway, TestGateway];
let directory: BucketWriter<SandboxEntry>;

beforeEach(async () => {
  nats = await startNats();
  gateways = [await TestGateway.open(nats), await TestGateway.open(nats), await TestGateway.open(nats)];
  directory = await BucketWriter.open(await nats.connect(), buckets.sandboxes, checker(SandboxEntry));
});
afterEach(async () => {
  for (const { peers, reservations } of gateways) {
    peers.leave();
    reservations.stop();
  }
  await nats?.[Symbol.asyncDispose]();
});

async function joined(...those: TestGateway[]): Promise<void> {
  for (const gateway of those) gateway.join();
  await acquainted(those);
}

/** Asks for places one beside the other; returns those that were granted. Other errors than the limit are thrown. */
async function reserve(gateway: TestGateway, key: string, limit: number, count: number): Promise<Reservation[]> {
  const asked = await Promise.all(
    Array.from({ length: count }, () =>
      gateway.reservations.reserve(newId("reservation"), key, limit).catch((error) => {
        if (error instanceof SandgateError && error.code === "sandbox_limit_reached") return undefined;
        throw error;
      }),
    ),
  );
  return asked.filter((reservation) => reservation !== undefined);
}

/** As a worker does when it has begun to make the sandbox of a reservation; returns the sandbox's id. */
async function announce({ id: reservation_id }: Reservation, key_id: string): Promise<string> {
  const id = newId("sandbox");
  const size = { cpu: 1, memory: 512, storage: 5, network: "none", image: "default" } as const;
  const entry = { id, name: "s", account_id: "acct_1", worker_id: "w", status: "creating", created_at_ms: 1, ...size } as const;
  await directory.put(entryKey("w", id), { ...entry, key_id, reservation_id });
  return id;
}

test("of simultaneous reservations through all gateways exactly as many as the limit are granted", async () => {
  await joined(...gateways);
  for (let number = 0; number < 10; number++) {
    const granted = await Promise.all(gateways.map((gateway) => reserve(gateway, `key_${number}`, 10, 30)));
    assert.equal(granted.flat().length, 10);
  }
});

test("a place that is settled without a sandbox is free, one with a sandbox is taken until that is gone", async () => {
  await joined(...gateways);
  const key = keyOf(gateways);
  const [owner, other, another] = gateways;
  const [used, unused] = await reserve(other, key, 2, 2);
  assert.ok(used && unused);
  const sandbox = await announce(used, key);
  used.settle();
  unused.settle();
  const [last] = await until("the free place", async () => {
    const granted = await reserve(owner, key, 2, 2);
    return granted.length > 0 && granted;
  });
  assert.deepEqual(await reserve(another, key, 2, 3), []);
  await directory.delete(entryKey("w", sandbox));
  assert.equal((await reserve(another, key, 2, 3)).length, 1, "at once after the deletion is stored");
  last?.settle();
});

const newIds = (count: number): string[] => Array.from({ length: count }, () => newId("reservation"));

test("of several places that are asked for together all or none are granted, whichever gateway is asked", async () => {
  await joined(...gateways);
  const key = keyOf(gateways);
  for (const gateway of gateways) {
    const asked = Array.from({ length: 6 }, () => gateway.reservations.reserveAll(newIds(3), key, 10));
    const granted = (await Promise.allSettled(asked)).filter(({ status }) => status === "fulfilled") as PromiseFulfilledResult<Reservation>[];
    assert.equal(granted.length, 3);
    await assert.rejects(gateway.reservations.reserveAll(newIds(2), key, 10), {
      code: "sandbox_limit_reached",
      message: "this key may have 10 sandboxes at the same time, which leaves no room for 2 more",
    });
    const last = await gateway.reservations.reserveAll(newIds(1), key, 10);
    await Promise.all([...granted.map(({ value }) => value), last].map((reservation) => reservation.settle()));
  }
});

test("of places that were reserved together those with a sandbox stay taken, and the others are free when they are settled", async () => {
  await joined(...gateways);
  const key = keyOf(gateways);
  const [owner, other] = gateways;
  const ids = newIds(4);
  const reservation = await other.reservations.reserveAll(ids, key, 4);
  assert.equal(reservation.id, ids[0]);
  for (const id of ids) assert.ok(other.reservations.holds(id));
  for (const id of ids.slice(0, 3)) await announce({ ...reservation, id }, key);
  assert.deepEqual(await reserve(owner, key, 4, 1), []);
  await reservation.settle();
  for (const id of ids) assert.ok(!other.reservations.holds(id));
  assert.equal((await reserve(owner, key, 4, 2)).length, 1);
});

test("a sandbox that its gateway's owner has not heard of yet is counted", async () => {
  await joined(...gateways);
  const key = keyOf(gateways);
  const [owner, other] = gateways;
  for (let number = 0; number < 20; number++) {
    const [reservation] = await reserve(other, key, number + 1, 1);
    assert.ok(reservation, "the place of the next one");
    await announce(reservation, key);
    reservation.settle();
    assert.deepEqual(await reserve(owner, key, number + 1, 2), []);
  }
});

test("a gateway that joins as the owner knows of reservations and of sandboxes", async () => {
  const [newcomer, former, other] = gateways;
  await joined(former, other);
  const key = keyOf(gateways);
  const made = await Promise.all([reserve(former, key, 6, 2), reserve(other, key, 6, 2)]);
  for (const [reservation] of made) {
    await announce(reservation as Reservation, key);
    reservation?.settle();
  }
  newcomer.join();
  await acquainted(gateways);
  const granted = await Promise.all(gateways.map((gateway) => reserve(gateway, key, 6, 4)));
  assert.equal(granted.flat().length, 2);
});

test("reservations that are made while a gateway joins never exceed the limit", async () => {
  const [newcomer, former, other] = gateways;
  await joined(former, other);
  const key = keyOf(gateways);
  const waves = [former, other, former, other].map((gateway) => reserve(gateway, key, 10, 8));
  newcomer.join();
  const more = [former, other].map((gateway) => reserve(gateway, key, 10, 8));
  const granted = (await Promise.all([...waves, ...more])).flat();
  await acquainted(gateways);
  granted.push(...(await reserve(newcomer, key, 10, 20)));
  assert.equal(granted.length, 10);
});

test("an owner that leaves hands over the reservations", async () => {
  await joined(...gateways);
  const [owner, next, other] = gateways;
  const key = keyOf(gateways);
  assert.equal((await reserve(other, key, 5, 3)).length, 3);
  owner.leave();
  await acquainted([next, other]);
  assert.equal((await reserve(next, key, 5, 5)).length, 2);
});

test("reservations right after the owner's death wait for its successor, and are exact", async () => {
  await joined(...gateways);
  const [owner, next, other] = gateways;
  const key = keyOf(gateways);
  assert.equal((await reserve(other, key, 5, 2)).length, 2);
  await owner.die();
  const granted = await Promise.all([next, other].map((gateway) => reserve(gateway, key, 5, 4)));
  assert.equal(granted.flat().length, 3);
});

test("reservations that the owner was asked for and died with are its successor's, and are exact", async () => {
  const [owner, next, other] = gateways;
  owner.join({ deaf: true });
  for (const gateway of [next, other]) gateway.join();
  await acquainted(gateways);
  const key = keyOf(gateways);
  const asked = [next, other].map((gateway) => reserve(gateway, key, 5, 4));
  await next.bus.connection.flush();
  await owner.die();
  assert.equal((await Promise.all(asked)).flat().length, 5);
});

test("after the owner's death its successor counts what the others hold and what has been made", async () => {
  await joined(...gateways);
  const [owner, next, other] = gateways;
  const key = keyOf(gateways);
  const held = await Promise.all([reserve(next, key, 8, 2), reserve(other, key, 8, 3)]);
  const [made] = held[0];
  assert.ok(made);
  await announce(made, key);
  made.settle();
  await owner.die();
  await acquainted([next, other]);
  const granted = await Promise.all([next, other].map((gateway) => reserve(gateway, key, 8, 8)));
  assert.equal(granted.flat().length, 3);
});

test("the places of a gateway that died are free again once it is known to be gone, those of its sandboxes are not", async () => {
  await joined(...gateways);
  const [owner, dying, other] = gateways;
  const key = keyOf(gateways);
  const [made] = await reserve(dying, key, 4, 4);
  assert.ok(made);
  await announce(made, key);
  await dying.die();
  assert.deepEqual(await reserve(other, key, 4, 4), []);
  await acquainted([owner, other]);
  let granted = 0;
  await until("three places", async () => {
    granted += (await reserve(other, key, 4, 4)).length;
    return granted >= 3;
  });
  assert.equal(granted, 3);
  assert.deepEqual(await reserve(owner, key, 4, 4), []);
});
