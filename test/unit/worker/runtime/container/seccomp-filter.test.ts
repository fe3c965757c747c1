/** The filter of system calls that crun makes once and is given for all other containers. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SeccompFilter } from "../../../../../worker/runtime/container/seccomp-filter.ts";

const annotation = "run.oci.seccomp_bpf_data";
const seccompProfiles = { whole: "/whole.json", empty: "/empty.json" };
const asBefore = { seccomp_profile_path: seccompProfiles.whole, annotations: {} };
const given = (program: Buffer): object => ({ seccomp_profile_path: seccompProfiles.empty, annotations: { [annotation]: program.toString("base64") } });

/** What the next container is made with after crun has made some with these files, one after the other. */
function specifiedAfter(programs: readonly (Buffer | undefined)[], takesReadyFilters = true): object {
  const crunDir = mkdtempSync(join(tmpdir(), "sandgate-filter-"));
  try {
    const filter = new SeccompFilter({ crunDir, seccompProfiles, takesReadyFilters });
    for (const [index, program] of programs.entries()) {
      mkdirSync(join(crunDir, String(index)));
      if (program) writeFileSync(join(crunDir, String(index), "seccomp.bpf"), program);
      filter.takeFrom(String(index));
    }
    return filter.specification;
  } finally {
    rmSync(crunDir, { recursive: true });
  }
}

test("the first container has crun make the filter, all others are given it, and a profile that allows nothing without it", () => {
  assert.deepEqual(specifiedAfter([]), asBefore);
  const [first, second] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)];
  assert.deepEqual(specifiedAfter([first, second]), given(first));
});

test("what is no whole filter is given to no container", () => {
  const whole = Buffer.alloc(8, 1);
  assert.deepEqual(specifiedAfter([undefined, Buffer.alloc(0), Buffer.alloc(12)]), asBefore);
  assert.deepEqual(specifiedAfter([undefined, Buffer.alloc(0), Buffer.alloc(12), whole]), given(whole));
});

test("a runtime that takes no ready filter makes it for each container", () => {
  assert.deepEqual(specifiedAfter([Buffer.alloc(16, 1)], false), asBefore);
});
