/** Snapshots that end in the middle of the copy, or before it for want of disk space. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import type { CrashRig } from "../../helpers/crash.ts";
import { expectError } from "../../helpers/expect.ts";
import { stoppedProcesses, untilHostHas } from "../../helpers/host-state.ts";
import { usable } from "../../helpers/resilience.ts";
import { lasting } from "../../helpers/snapshots.ts";
import { until } from "../../helpers/until.ts";

export function copyTests(rig: CrashRig): void {
  test("kill -9 of the worker in the middle of a copy ends the copy as well", async () => {
    const pid = await rig.startHeldSnapshot();
    await rig.stack.worker.kill9();
    await until("the copying program is gone", () => !existsSync(`/proc/${pid}`));
    await rig.stack.worker.start();
    await usable(rig.api, rig.source);
    await rig.assertAgreement([rig.kept.id], []);
  });

  test("a worker that stops in the middle of a copy sets the sandbox going before it leaves", async () => {
    const pid = await rig.startHeldSnapshot();
    await rig.stack.worker.stop();
    await until("the copying program is gone", () => !existsSync(`/proc/${pid}`));
    assert.deepEqual(stoppedProcesses(await rig.stack.containers()), []);
    await rig.stack.worker.start();
    await usable(rig.api, rig.source);
    await rig.assertAgreement([rig.kept.id], []);
  });

  test("without disk space for another copy a snapshot is refused with 507, and nothing of it is left", async () => {
    await rig.withWorker({ SANDGATE_DISK_FLOOR_BYTES: String(1024 ** 4) }, async (worker) => {
      await until("its worker takes calls", async () => (await rig.api.call("GET", `/v1/sandboxes/${rig.source}/status`)).status === 200);
      for (const body of [{}, { quick: true }]) expectError(await rig.calls.snapshot(rig.source, body), "insufficient_storage");
      expectError(await rig.calls.restore(rig.kept.id), "insufficient_storage");
      await untilHostHas(worker, { layers: 1, roots: [rig.source] });
      assert.deepEqual((await rig.calls.list()).data.map(lasting), [lasting(rig.kept)]);
    });
    await rig.assertRestorable(rig.kept.id);
  });
}
