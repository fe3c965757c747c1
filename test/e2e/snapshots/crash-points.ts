/** A worker that dies while it takes a snapshot: after its return the snapshot is whole or not there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultPoint } from "../../../shared/faults.ts";
import { newId } from "../../../shared/util/ids.ts";
import type { CrashRig } from "../../helpers/crash.ts";
import { expectOk } from "../../helpers/expect.ts";

/** While files are copied: what is left of them then depends on where they are. */
export const copyPoints: readonly FaultPoint[] = ["snapshot.frozen", "snapshot.copied", "snapshot.layer"];
const published: readonly FaultPoint[] = ["snapshot.recorded", "snapshot.published"];
export const snapshotPoints: readonly FaultPoint[] = ["snapshot.begun", ...copyPoints, ...published];

export function snapshotCrashTests(rig: CrashRig, points: readonly FaultPoint[]): void {
  for (const point of points) {
    test(`the worker dies at ${point}: the source runs on, the snapshot is whole or not there, the call can be repeated`, async () => {
      const key = { "idempotency-key": newId("request") };
      await rig.dyingAt(point, () => rig.calls.snapshot(rig.source, { name: "cut" }, key));
      const left = (await rig.calls.list()).data.filter(({ name }) => name === "cut").map(({ id }) => id);
      assert.equal(left.length, published.includes(point) ? 1 : 0);
      await rig.assertAgreement([rig.kept.id, ...left], []);
      const { id } = expectOk(await rig.calls.snapshot(rig.source, { name: "cut" }, key), 201);
      if (left.length > 0) assert.equal(id, left[0]);
      await rig.assertAgreement([rig.kept.id, id], []);
      await rig.assertRestorable(id);
      expectOk(await rig.calls.delete(id));
      await rig.assertAgreement([rig.kept.id], []);
    });
  }
}

export function quickSnapshotCrashTest(rig: CrashRig): void {
  test("the worker dies in a quick snapshot: nothing is left of it", async () => {
    await rig.dyingAt("snapshot.copied", () => rig.calls.snapshot(rig.source, { quick: true }));
    await rig.assertAgreement([rig.kept.id], []);
  });
}
