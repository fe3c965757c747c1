/** A control group of cgroup v2, for the processes of a test. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { until } from "./until.ts";

/** Where this machine has such groups. */
const groups = (): string => /^\S+ (\S+) cgroup2 /m.exec(readFileSync("/proc/mounts", "utf8"))?.[1] ?? assert.fail("no cgroup v2");

export interface UnifiedGroup extends AsyncDisposable {
  readonly path: string;
}

/** An empty one, removed when its processes have ended. */
export function unifiedGroup(name: string): UnifiedGroup {
  const path = mkdtempSync(join(groups(), `sandgate-${name}-`));
  const remove = async (): Promise<void> => {
    await until("the group is empty", () => readFileSync(join(path, "cgroup.procs"), "utf8") === "");
    rmdirSync(path);
  };
  return { path, [Symbol.asyncDispose]: remove };
}
