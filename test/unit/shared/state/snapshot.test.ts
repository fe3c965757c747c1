/** Every state of a snapshot, and of its copy in the archive, with every event. */
import { archiveEvents, nextArchiveState, nextSnapshotState, snapshotEvents } from "../../../../shared/state/snapshot.ts";
import { testMoves } from "../../../helpers/moves.ts";

testMoves("snapshot", nextSnapshotState, snapshotEvents, {
  creating: { taken: "ready" },
  ready: { delete: "deleting" },
  error: { delete: "deleting" },
  deleting: { delete: "deleting" },
});

testMoves("copy in the archive", nextArchiveState, archiveEvents, {
  local: {},
  pending: { stored: "done" },
  done: { stored: "done" },
});
