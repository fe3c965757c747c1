/** A worker with a volume that dies while it takes, restores or deletes: on one installation. */
import { describe } from "node:test";
import { CrashRig } from "../../helpers/crash.ts";
import { fixture } from "../../helpers/fixture.ts";
import { snapshotCrashTests } from "./crash-points.ts";
import { restoreCrashTests } from "./crash-restore.ts";

const rig = await fixture(CrashRig.open("snap-crash-volume"));

describe("taking", () => snapshotCrashTests(rig));
describe("restoring and deleting", () => restoreCrashTests(rig));
