/** Every state of a sandbox with every event. */
import { nextSandboxState, sandboxEvents } from "../../../../shared/state/sandbox.ts";
import { testMoves } from "../../../helpers/moves.ts";

testMoves("sandbox", nextSandboxState, sandboxEvents, {
  creating: { started: "running", arrive: "moving", failed: "error", lost: "error" },
  running: { leave: "moving", delete: "deleting", lost: "error", recovered: "running" },
  moving: { arrive: "moving", stay: "running", delete: "deleting", recovered: "moving" },
  error: { delete: "deleting", lost: "error", recovered: "running" },
  deleting: { delete: "deleting", lost: "deleting" },
});
