/** Every state of a sandbox with every event. */
import { nextSandboxState, sandboxEvents } from "../../../../shared/state/sandbox.ts";
import { testMoves } from "../../../helpers/moves.ts";

testMoves("sandbox", nextSandboxState, sandboxEvents, {
  creating: { started: "running", failed: "error", lost: "error" },
  running: { delete: "deleting", lost: "error", recovered: "running" },
  error: { delete: "deleting", lost: "error", recovered: "running" },
  deleting: { delete: "deleting", lost: "deleting" },
});
