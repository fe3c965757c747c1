/** Every state of a live session with every event. */
import { nextSessionState, sessionEvents } from "../../../../shared/state/session.ts";
import { testMoves } from "../../../helpers/moves.ts";

testMoves("session", nextSessionState, sessionEvents, {
  starting: { started: "running", stop: "ending", lose: "lost" },
  running: { stop: "ending", lose: "lost", exited: "ended" },
  ending: { started: "ending", stop: "ending", lose: "lost", exited: "ended" },
  lost: { started: "lost", stop: "lost", lose: "lost", exited: "ended" },
  ended: { stop: "ended", lose: "ended" },
});
