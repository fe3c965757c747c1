/** Snapshots of calls that are over are removed, over a real nats-server; the gateway is one in the test's process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SnapshotEntry } from "../../../../shared/bus/entries.ts";
import { newId } from "../../../../shared/util/ids.ts";
import type { WorkerContext } from "../../../../worker/context.ts";
import { removeAbandoned } from "../../../../worker/snapshots/temporary.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { TestGateway } from "../../../helpers/gateways.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";

const nats = await fixture(startNats());
const bus = await nats.connect();

/** A worker with these snapshots, as far as they are looked at; `left` has the ids of those that are not removed. */
function workerWith(...records: Partial<SnapshotEntry>[]) {
  const known = new Map(records.map((record) => [record.id, record]));
  const snapshots = {
    all: () => known.values(),
    get: (id: string) => known.get(id),
    remove: async (id: string) => void known.delete(id),
  };
  const context = { bus, snapshots, reserve: { spend: <T>(work: () => Promise<T>) => work() }, log: quiet } as unknown as WorkerContext;
  return { context, left: () => [...known.keys()] };
}

test("a snapshot stays while its gateway holds the place of the call, and goes when it does not, or is gone", async (t) => {
  const gateway = await TestGateway.open(nats);
  t.after(() => gateway.leave());
  gateway.join();
  const reservation = await gateway.reservations.reserveAll([newId("reservation"), newId("reservation")], "key_1", 10);
  const temporary = { peer: gateway.id, reservation_id: reservation.id };
  const needed = { id: "needed", status: "ready", temporary } as const;
  const over = { id: "over", status: "ready", temporary: { peer: gateway.id, reservation_id: newId("reservation") } } as const;
  const orphaned = { id: "orphaned", status: "ready", temporary: { peer: "gateway.gone", reservation_id: reservation.id } } as const;
  const unfinished = { id: "unfinished", status: "creating", temporary: over.temporary } as const;
  const { context, left } = workerWith(needed, over, orphaned, unfinished, { id: "usual", status: "ready" });
  await removeAbandoned(context);
  assert.deepEqual(left(), ["needed", "unfinished", "usual"]);
  await reservation.settle();
  await removeAbandoned(context);
  assert.deepEqual(left(), ["unfinished", "usual"]);
});

test("a snapshot stays when its gateway cannot be asked", async (t) => {
  const gateway = await TestGateway.open(nats);
  t.after(() => gateway.leave());
  gateway.join({ deaf: true });
  // Until the server knows that it is there, it says that nobody is.
  await gateway.bus.connection.flush();
  const { context, left } = workerWith({ id: "unsure", status: "ready", temporary: { peer: gateway.id, reservation_id: newId("reservation") } });
  await removeAbandoned(context);
  assert.deepEqual(left(), ["unsure"]);
  await gateway.hear();
  await removeAbandoned(context);
  assert.deepEqual(left(), []);
});

test("what cannot be removed now is tried again later", async () => {
  const { context, left } = workerWith({ id: "stubborn", status: "ready", temporary: { peer: "gateway.gone", reservation_id: newId("reservation") } });
  const { remove } = context.snapshots;
  context.snapshots.remove = () => Promise.reject(new Error("the disk is full"));
  await removeAbandoned(context);
  assert.deepEqual(left(), ["stubborn"]);
  context.snapshots.remove = remove;
  await removeAbandoned(context);
  assert.deepEqual(left(), []);
});
