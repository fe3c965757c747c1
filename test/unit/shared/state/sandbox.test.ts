/** Every state of a sandbox with every event. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nextState, type SandboxEvent, type SandboxState, sandboxEvents, sandboxStates } from "../../../../shared/state/sandbox.ts";

const refused = undefined;
const expected: Record<SandboxState, Record<SandboxEvent, SandboxState | undefined>> = {
  creating: { started: "running", failed: "error", delete: refused, lost: "error", recovered: refused },
  running: { started: refused, failed: refused, delete: "deleting", lost: "error", recovered: "running" },
  error: { started: refused, failed: refused, delete: "deleting", lost: "error", recovered: "running" },
  deleting: { started: refused, failed: refused, delete: "deleting", lost: "deleting", recovered: refused },
};

for (const state of sandboxStates) {
  for (const event of sandboxEvents) {
    const next = expected[state][event];
    test(next ? `"${event}" makes a sandbox that is ${state} ${next}` : `"${event}" is refused while a sandbox is ${state}`, () => {
      assert.equal(nextState(state, event), next);
    });
  }
}
