/** The filter of system calls that crun makes once and is given for all other containers. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SeccompFilter } from "../../../../../worker/runtime/container/seccomp-filter.ts";

const annotation = "run.oci.seccomp_bpf_data";

/** The annotations after crun has made containers with these files, one after the other. */
function annotationsAfter(...programs: readonly (Buffer | undefined)[]): Readonly<Record<string, string>> {
  const crunDir = mkdtempSync(join(tmpdir(), "sandgate-filter-"));
  try {
    const filter = new SeccompFilter({ crunDir });
    for (const [index, program] of programs.entries()) {
      mkdirSync(join(crunDir, String(index)));
      if (program) writeFileSync(join(crunDir, String(index), "seccomp.bpf"), program);
      filter.takeFrom(String(index));
    }
    return filter.annotations;
  } finally {
    rmSync(crunDir, { recursive: true });
  }
}

test("the first container has crun make the filter, all others are given it", () => {
  assert.deepEqual(annotationsAfter(), {});
  const [first, second] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)];
  assert.deepEqual(annotationsAfter(first, second), { [annotation]: first.toString("base64") });
});

test("what is no whole filter is given to no container", () => {
  const whole = Buffer.alloc(8, 1);
  assert.deepEqual(annotationsAfter(undefined, Buffer.alloc(0), Buffer.alloc(12)), {});
  assert.deepEqual(annotationsAfter(undefined, Buffer.alloc(0), Buffer.alloc(12), whole), { [annotation]: whole.toString("base64") });
});
