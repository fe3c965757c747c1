/** A worker without a volume that dies while it takes, restores, deletes or copies: on one installation. */
import { describe } from "node:test";
import { CrashRig } from "../../helpers/crash.ts";
import { fixture } from "../../helpers/fixture.ts";
import { copyTests } from "./copy.ts";
import { snapshotCrashTests } from "./crash-points.ts";
import { restoreCrashTests } from "./crash-restore.ts";

const rig = await fixture(CrashRig.open("snap-crash", { SANDGATE_VOLUME: "none" }));

describe("taking", () => snapshotCrashTests(rig));
describe("restoring and deleting", () => restoreCrashTests(rig));
// Last, because it fills the source with a large file.
describe("copying", () => copyTests(rig));
