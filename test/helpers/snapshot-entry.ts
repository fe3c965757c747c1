import type { SnapshotEntry } from "../../shared/bus/entries.ts";
import { newId } from "../../shared/util/ids.ts";

/** A snapshot of the worker "w" as the directory lists it, with nothing beyond its image. */
export const snapshotEntry = (changes: Partial<SnapshotEntry> = {}): SnapshotEntry => ({
  id: newId("snapshot"),
  name: "s",
  account_id: "a",
  worker_id: "w",
  source_sandbox_id: newId("sandbox"),
  source_sandbox_name: "source",
  status: "ready",
  created_at_ms: 1,
  consistency: "application",
  size_bytes: 0,
  memory: false,
  pause_ms: 0,
  archived: "pending",
  manifest: {
    image: "default",
    base: { id: "i", env: [], working_dir: "/", user: "" },
    layers: [],
    cpu: 1,
    memory: 128,
    storage: 1,
    network: "none",
    env_vars: {},
  },
  ...changes,
});
