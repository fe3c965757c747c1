/**
 * The privileged helper, or all that runs, is killed while a snapshot is restored: after that everything works, and nothing is left
 * of what was not answered.
 */
import { describe, test } from "node:test";
import type { FaultPoint, HelperPoint } from "../../../shared/faults.ts";
import { newId } from "../../../shared/util/ids.ts";
import { CrashRig } from "../../helpers/crash.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";

const hits = { "the helper": (rig: CrashRig) => rig.killHelper(), everything: (rig: CrashRig) => rig.killEverything() };
const restorePoints: readonly (FaultPoint | HelperPoint)[] = [
  "create.mounted",
  "create.started",
  "quota.set.begun",
  "quota.set.done",
  "ids.map.begun",
  "ids.map.done",
];
/** Another limit than its source has: that one it would have already. */
const other = { resources: { storage: 4 } };

for (const [what, hit] of Object.entries(hits)) {
  const rig = await fixture(CrashRig.open("snap-crash-helper", {}, { helperProcess: true }));
  describe(`kill -9 of ${what}`, () => {
    for (const point of restorePoints) {
      test(`at ${point} of a restore: the sandbox is whole or not there, the call can be repeated`, async () => {
        const key = { "idempotency-key": newId("request") };
        const restore = () => rig.calls.restore(rig.kept.id, other, key);
        const answer = await rig.meanwhile(point, restore, () => hit(rig));
        await rig.assertWhole(answer?.status === 201 ? [answer.body.id] : []);
        const { id } = expectOk(await restore(), 201);
        await rig.assertFiles(id);
        await rig.assertWhole([id]);
        await rig.api.delete(id);
        await rig.assertWhole([]);
      });
    }
  });
}
