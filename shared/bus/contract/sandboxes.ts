/** Calls to workers that make and remove sandboxes and snapshots. */
import Type from "typebox";
import { Environment } from "../../schemas/environment.ts";
import { MemoryWish } from "../../schemas/snapshots.ts";
import { Manifest, SandboxEntry, SnapshotEntry } from "../entries.ts";
import type { Declared } from "./declared.ts";
import { Access, Count, caller, Empty, Id, Isolation, Peer } from "./fields.ts";

/** What every new sandbox is told. */
const made = {
  ...caller,
  key_id: Id,
  /** Made from the id when absent. */
  name: Type.Optional(Type.String()),
  cpu: Count,
  memory: Count,
  storage: Count,
  env_vars: Environment,
  isolation: Isolation,
  /** Whether the answer waits until the sandbox runs; else it comes as soon as the intent to make it is durable. */
  wait: Type.Boolean(),
};

export const sandboxCalls = {
  create: {
    request: Type.Object({
      ...made,
      image: Type.String(),
      network: Access,
      /** Comes back in the directory entry, so that the sandbox is known for the one that was reserved. */
      reservation_id: Type.Optional(Id),
      /** The gateway that holds the reservation for as long as it waits for the sandbox. */
      peer: Type.Optional(Peer),
    }),
    reply: SandboxEntry,
    timeoutMs: ({ imagePullTimeoutMs }) => 120_000 + imagePullTimeoutMs,
  },
  /** Makes a sandbox from a snapshot, with the same answers as a create. */
  restore: {
    request: Type.Object({
      ...made,
      snapshot_id: Id,
      /** The worker that took the snapshot, and stored its layers. */
      worker_id: Id,
      manifest: Manifest,
      /** Lays the layers over another image. */
      image: Type.Optional(Type.String()),
      /** Absent: `skip`. */
      memory_wish: Type.Optional(MemoryWish),
      /** Whether the snapshot includes memory, and if not although that was asked for, why. */
      memory_taken: Type.Optional(Type.Boolean()),
      memory_reason: Type.Optional(Type.String()),
      reservation_id: Id,
      peer: Peer,
    }),
    reply: SandboxEntry,
    /** Another worker than the snapshot's own copies its layers from the object store first. */
    timeoutMs: ({ imagePullTimeoutMs }) => 600_000 + imagePullTimeoutMs,
  },
  delete: { request: Type.Object({ ...caller, sandbox_id: Id }), reply: Empty, timeoutMs: 60_000 },
  /** Takes a snapshot; replies with its entry when it is durable. */
  snapshot: {
    request: Type.Object({
      ...caller,
      sandbox_id: Id,
      /** Made from the sandbox's name when absent. */
      name: Type.Optional(Type.String()),
      quick: Type.Boolean(),
      /** Absent: `skip`. */
      memory_wish: Type.Optional(MemoryWish),
      attempt_id: Id,
      temporary: SnapshotEntry.properties.temporary,
    }),
    reply: SnapshotEntry,
    /** Gigabytes of changed files are copied while the caller waits. */
    timeoutMs: 600_000,
  },
  deleteSnapshot: { request: Type.Object({ ...caller, snapshot_id: Id }), reply: Empty, timeoutMs: 60_000 },
} satisfies Declared;
