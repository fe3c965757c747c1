/** Parts die while a sandbox moves, at every step: afterwards exactly one worker has it, with all of its files. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultPoint } from "../../../shared/faults.ts";
import { fixture } from "../../helpers/fixture.ts";
import { MoveRig } from "./rig.ts";

const rig = await fixture(MoveRig.open("move-crash"));
const { api, stack } = rig;
const id = await api.create({ name: "survivor" });
let serial = 0;

/** Moves while something happens at a point. Afterwards it is on the worker that was its own, or on the other one, as wanted. */
async function moveWhile(point: FaultPoint, signal: "SIGKILL" | "SIGSTOP", wanted: "stays" | "moves", meanwhile: () => Promise<void>): Promise<void> {
  const text = `${point} ${serial++}`;
  await api.execute(id, `echo ${text} > /root/state`);
  const owner = await rig.ownerOf(id);
  await rig.interrupted(point, signal, () => rig.move(id), meanwhile);
  await rig.repair();
  assert.equal(await rig.settled(id), wanted === "stays" ? owner : rig.otherThan(owner));
  assert.equal((await api.execute(id, "cat /root/state")).stdout, `${text}\n`);
}

for (const [point, wanted] of [
  ["move.left", "stays"],
  ["move.taken", "stays"],
  ["move.held", "stays"],
  ["move.received", "stays"],
  ["move.confirming", "moves"],
  ["move.confirmed", "moves"],
  ["move.ended", "moves"],
] as const)
  test(`a worker that is killed at ${point}, and is started again: the sandbox ${wanted}`, () => moveWhile(point, "SIGKILL", wanted, () => rig.repair()));

test("a worker that is killed at move.confirming, and comes back when the gateway waits for it no longer: the sandbox moves", () =>
  moveWhile("move.confirming", "SIGKILL", "moves", async () => {}));

for (const [point, wanted] of [
  ["move.taken", "stays"],
  ["move.received", "stays"],
  ["move.confirming", "moves"],
] as const)
  test(`a gateway that is killed when a worker is at ${point}: the sandbox ${wanted}`, () =>
    moveWhile(point, "SIGSTOP", wanted, async () => {
      await stack.gateway.kill9();
      await stack.gateway.start();
    }));

for (const [point, wanted] of [
  ["move.held", "stays"],
  ["move.confirming", "moves"],
] as const)
  test(`a NATS server that is killed when a worker is at ${point}: the sandbox ${wanted}`, () =>
    moveWhile(point, "SIGSTOP", wanted, async () => {
      await stack.nats.kill9();
      await stack.nats.start();
      await rig.repair();
    }));

test("afterwards it moves as before", async () => {
  const owner = await rig.ownerOf(id);
  assert.equal((await rig.move(id)).status, 200);
  assert.equal(await rig.settled(id), rig.otherThan(owner));
});
