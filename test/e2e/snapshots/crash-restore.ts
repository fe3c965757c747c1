/** A worker that dies while it restores or deletes: after its return all is whole or gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultPoint } from "../../../shared/faults.ts";
import { newId } from "../../../shared/util/ids.ts";
import type { CrashRig } from "../../helpers/crash.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { isOnVolume, untilHostHas } from "../../helpers/host-state.ts";
import { listOf, usable } from "../../helpers/resilience.ts";
import { lasting } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

export const createPoints: readonly FaultPoint[] = ["create.mounted", "create.started"];
export const deletePoints: readonly FaultPoint[] = ["delete.marked", "delete.withdrawn"];

/** What does not depend on where the files of restored sandboxes are. */
export function creationCrashTests(rig: CrashRig): void {
  // At the first of them nobody may have been told of the sandbox.
  for (const point of ["create.noted", ...createPoints] as const) {
    test(`the worker dies at ${point} of a sandbox from an image: nothing of it is left, the call can be repeated`, async () => {
      const key = { "idempotency-key": newId("request") };
      const create = () => rig.api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }, key);
      await rig.dyingAt(point, create);
      await rig.assertAgreement([rig.kept.id], []);
      const { id } = expectOk(await create(), 201);
      await rig.assertAgreement([rig.kept.id], [id]);
      await rig.api.delete(id);
      await rig.assertAgreement([rig.kept.id], []);
    });
  }

  for (const point of createPoints) {
    test(`the worker dies at ${point} of a restore that nobody waits for: the sandbox is made after its return`, async () => {
      // Whether the answer has left the worker when it dies depends on how long the disk takes. What it promises holds all the same.
      const restore = () => rig.calls.restore(rig.kept.id, { name: "promised", wait_for_ready: false });
      const { status, body } = await rig.dyingAt(point, restore);
      const { id } = (await listOf(rig.api)).find(({ name }) => name === "promised") ?? assert.fail("it is not there");
      if (status !== 503) assert.deepEqual([status, body.id], [201, id]);
      await usable(rig.api, id);
      await rig.assertFiles(id);
      await rig.assertAgreement([rig.kept.id], [id]);
      await rig.api.delete(id);
    });
  }
}

export function restoreCrashTests(rig: CrashRig, points: readonly FaultPoint[]): void {
  for (const point of points) {
    test(`the worker dies at ${point}: nothing of the sandbox is left, the call can be repeated`, async () => {
      const key = { "idempotency-key": newId("request") };
      await rig.dyingAt(point, () => rig.calls.restore(rig.kept.id, {}, key));
      await rig.assertAgreement([rig.kept.id], []);
      const { id } = expectOk(await rig.calls.restore(rig.kept.id, {}, key), 201);
      await rig.assertFiles(id);
      await rig.assertAgreement([rig.kept.id], [id]);
      await rig.api.delete(id);
      await rig.assertAgreement([rig.kept.id], []);
    });
  }
}

export function deletionCrashTests(rig: CrashRig, points: readonly FaultPoint[]): void {
  for (const point of points) {
    test(`the worker dies at ${point}: the snapshot is gone after its return, others and sandboxes made from it stay`, async () => {
      const doomed = await rig.calls.take(rig.source);
      const { id } = await rig.calls.restored(doomed.id);
      await rig.dyingAt(point, () => rig.calls.delete(doomed.id));
      expectError(await rig.calls.get(doomed.id), "not_found");
      expectError(await rig.calls.delete(doomed.id), "not_found");
      await rig.assertFiles(id);
      assert.deepEqual((await rig.calls.list()).data.map(lasting), [lasting(rig.kept)]);
      await untilHostHas(rig.stack.worker, { layers: isOnVolume(rig.stack.worker) ? 1 : 2, roots: [rig.source, id] });
      await rig.api.delete(id);
      await rig.assertAgreement([rig.kept.id], []);
      await rig.assertRestorable(rig.kept.id);
    });
  }

  test("the worker dies when the container of a deleted sandbox is gone and its files are not: they go after its return", async () => {
    const { id } = await rig.calls.restored(rig.kept.id);
    await rig.dyingAt("remove.container", () => rig.api.call("DELETE", `/v1/sandboxes/${id}/delete`));
    await rig.assertAgreement([rig.kept.id], []);
  });
}

export function killedDeletionTest(rig: CrashRig): void {
  test("kill -9 of the worker while a restored sandbox is deleted: nothing of it is left", async () => {
    const { id } = await rig.calls.restored(rig.kept.id);
    const cut = rig.api.call("DELETE", `/v1/sandboxes/${id}/delete`).catch(() => undefined);
    await until("the deletion is under way", async () => (await listOf(rig.api)).every((sandbox) => sandbox.id !== id || sandbox.status === "deleting"));
    await rig.stack.worker.kill9();
    await cut;
    await rig.stack.worker.start();
    await usable(rig.api, rig.source);
    await rig.assertAgreement([rig.kept.id], []);
  });
}
