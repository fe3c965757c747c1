/** A worker with a volume that dies at every point of taking, creating, restoring and deleting: on one installation. */
import { describe } from "node:test";
import { CrashRig } from "../../helpers/crash.ts";
import { fixture } from "../../helpers/fixture.ts";
import { quickSnapshotCrashTest, snapshotCrashTests, snapshotPoints } from "./crash-points.ts";
import { createPoints, creationCrashTests, deletePoints, deletionCrashTests, killedDeletionTest, restoreCrashTests } from "./crash-restore.ts";

const rig = await fixture(CrashRig.open("snap-crash-volume"));

describe("taking", () => {
  snapshotCrashTests(rig, snapshotPoints);
  quickSnapshotCrashTest(rig);
});
describe("creating", () => creationCrashTests(rig));
describe("restoring", () => restoreCrashTests(rig, createPoints));
describe("deleting", () => {
  deletionCrashTests(rig, deletePoints);
  killedDeletionTest(rig);
});
