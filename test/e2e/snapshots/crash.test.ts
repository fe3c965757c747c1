/** A worker without a volume that dies while it copies, restores or removes files, which are elsewhere then: on one installation. */
import { describe } from "node:test";
import { CrashRig } from "../../helpers/crash.ts";
import { fixture } from "../../helpers/fixture.ts";
import { copyTests } from "./copy.ts";
import { copyPoints, snapshotCrashTests } from "./crash-points.ts";
import { deletionCrashTests, restoreCrashTests } from "./crash-restore.ts";

const rig = await fixture(CrashRig.open("snap-crash", { SANDGATE_VOLUME: "none" }));

describe("taking", () => snapshotCrashTests(rig, copyPoints));
describe("restoring", () => restoreCrashTests(rig, ["create.started"]));
describe("deleting", () => deletionCrashTests(rig, ["delete.marked"]));
// Last, because it fills the source with a large file.
describe("copying", () => copyTests(rig));
