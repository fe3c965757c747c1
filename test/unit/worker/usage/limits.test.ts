/** When the commands of a sandbox must end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LiveSandbox } from "../../../../worker/sandboxes/registry.ts";
import { excessOf, type LimitFacts, memoryExcess } from "../../../../worker/usage/limits.ts";

const MiB = 1024 ** 2;
const GB = 1024 ** 3;
const nothingEnforced = { memory: false, cpu: false, pids: false, storage: false };
const allEnforced = { memory: true, cpu: true, pids: true, storage: true };

interface Use {
  readonly diskGB?: number;
  readonly unlistedGB?: number;
  readonly files?: number;
}

function excess({ diskGB = 0, unlistedGB = 0, files = 0 }: Use, facts: Partial<LimitFacts> = {}): string | undefined {
  const sandbox = {
    record: { memory: 256, storage: 2 },
    layer: { bytes: diskGB * GB, files },
    unlisted: { bytes: unlistedGB * GB, files: 0 },
  } as unknown as LiveSandbox;
  return excessOf(sandbox, { enforced: nothingEnforced, processes: 1, processesMax: 10, descriptors: 1, descriptorsMax: 100, ...facts });
}

test("a sandbox may use all of its limits", () => {
  assert.equal(excess({ diskGB: 1.5, unlistedGB: 0.5, files: 131_072 }, { processes: 10, descriptors: 100 }), undefined);
  assert.equal(memoryExcess({ record: { memory: 256 } } as LiveSandbox, 256 * MiB), undefined);
});

test("exceeding a limit by one gives a reason that names the limit", () => {
  assert.match(memoryExcess({ record: { memory: 256 } } as LiveSandbox, 257 * MiB) ?? "", /memory.*256 MiB/);
  assert.match(excess({}, { processes: 11 }) ?? "", /processes.*10/);
  assert.match(excess({}, { descriptors: 101 }) ?? "", /open files.*100/);
  assert.match(excess({ diskGB: 2.1 }) ?? "", /storage.*2 GB/);
});

test("unlinked files count as storage, and so does the number of files", () => {
  assert.match(excess({ diskGB: 1.5, unlistedGB: 0.6 }) ?? "", /storage.*2 GB/);
  assert.match(excess({ files: 131_073 }) ?? "", /more files than the 131072 .* 2 GB/);
});

test("limits that the kernel enforces are not checked", () => {
  assert.equal(excess({ diskGB: 999 }, { enforced: allEnforced, processes: 999 }), undefined);
});
