/** The worker, its privileged helper, or all that runs is killed while the volume grows: it becomes as large as it must be, and keeps what is in it. */
import assert from "node:assert/strict";
import { statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { HelperPoint } from "../../../shared/faults.ts";
import { newId } from "../../../shared/util/ids.ts";
import { CrashRig } from "../../helpers/crash.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { shrinkVolume } from "../../helpers/volume.ts";

const GiB = 1024 ** 3;

const hits = {
  "the worker": (rig: CrashRig) => rig.killWorker(),
  "the helper": (rig: CrashRig) => rig.killHelper(),
  everything: (rig: CrashRig) => rig.killEverything(),
};
const points: readonly HelperPoint[] = ["volume.grow.begun", "volume.grow.file", "volume.grow.device", "volume.grow.done"];

/** Of the file system, and of its file. */
function sizesOf(volume: string): { bytes: number; file: number } {
  const { blocks, bsize } = statfsSync(volume);
  return { bytes: blocks * bsize, file: statSync(join(dirname(volume), "volume.img")).size };
}

for (const [what, hit] of Object.entries(hits)) {
  const rig = await fixture(CrashRig.open("snap-crash-growth", {}, { helperProcess: true }));
  const volume = rig.stack.worker.spec.env.SANDGATE_VOLUME_DIR ?? "";
  describe(`kill -9 of ${what}`, () => {
    for (const point of points) {
      test(`at ${point}: the volume is as large as it must be, with all that was in it`, async () => {
        const before = sizesOf(volume);
        const resources = { cpus: 1, memory: 256, storage: Math.ceil(before.bytes / GiB) };
        const key = { "idempotency-key": newId("request") };
        const create = () => rig.api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", resources }, key);
        await rig.meanwhile(point, create, () => hit(rig));
        const { id } = expectOk(await create(), 201);
        const now = sizesOf(volume);
        assert.ok(now.bytes > before.bytes && now.file >= now.bytes, JSON.stringify([before, now]));
        await rig.assertWhole([id]);
        await rig.assertFiles(rig.source);
        await rig.assertRestorable(rig.kept.id);
        await rig.api.delete(id);
        await rig.assertWhole([]);
        // The next growth begins where this one did, so that this machine's disk has to hold one only.
        await shrinkVolume(volume, before.bytes);
        // A worker that has just started knows how much is free.
        await rig.killWorker();
      });
    }
  });
}
