/** When the commands of a sandbox must end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LiveSandbox } from "../../../worker/sandboxes/registry.ts";
import { excessOf, type LimitFacts } from "../../../worker/usage/limits.ts";
import type { Usage } from "../../../worker/usage/monitor.ts";

const MiB = 1024 ** 2;
const GB = 1024 ** 3;
const nothingEnforced = { memory: false, cpu: false, pids: false, storage: false };
const allEnforced = { memory: true, cpu: true, pids: true, storage: true };

function excess(use: { memoryMiB?: number; processes?: number; diskGB?: number; diskStale?: boolean }, facts: Partial<LimitFacts> = {}): string | undefined {
  const sandbox = { record: { memory: 256, storage: 2 }, diskBytes: (use.diskGB ?? 0) * GB, diskStale: use.diskStale ?? false } as unknown as LiveSandbox;
  const usage: Usage = { cpuPercent: 0, memoryBytes: (use.memoryMiB ?? 0) * MiB, processes: use.processes ?? 1 };
  return excessOf(sandbox, usage, { enforced: nothingEnforced, pidsMax: 10, hostIsFull: false, ...facts });
}

test("a sandbox may use all that it has", () => {
  assert.equal(excess({ memoryMiB: 256, processes: 10, diskGB: 2 }), undefined);
});

test("one more than a limit is a reason that names it", () => {
  assert.match(excess({ memoryMiB: 257 }) ?? "", /memory.*256 MiB/);
  assert.match(excess({ processes: 11 }) ?? "", /processes.*10/);
  assert.match(excess({ diskGB: 2.1 }) ?? "", /storage.*2 GB/);
});

test("limits that the kernel enforces are left to it", () => {
  assert.equal(excess({ memoryMiB: 999, processes: 999, diskGB: 999 }, { enforced: allEnforced }), undefined);
});

test("a full host ends the commands of the sandboxes that write, whoever enforces the limits", () => {
  for (const enforced of [nothingEnforced, allEnforced]) {
    assert.match(excess({ diskStale: true }, { hostIsFull: true, enforced }) ?? "", /host/);
    assert.equal(excess({ diskStale: false }, { hostIsFull: true, enforced }), undefined);
  }
});
