/** Calls to workers by which a sandbox gets from one to another, under its id: see `gateway/fleet/moves.ts` for their order. */
import Type from "typebox";
import { Environment } from "../../schemas/environment.ts";
import { SandboxEntry, SnapshotEntry } from "../entries.ts";
import type { Declared } from "./declared.ts";
import { Count, caller, Empty, Id, Peer } from "./fields.ts";

const ofMove = { ...caller, sandbox_id: Id, move_id: Id };

export const moveCalls = {
  /** The source: holds the sandbox still, and puts what it is made again from into the object store. */
  hold: {
    request: Type.Object({ ...ofMove, peer: Peer }),
    reply: Type.Object({
      sandbox: SandboxEntry,
      snapshot: SnapshotEntry,
      env_vars: Environment,
      /** What runs in it by calls. */
      commands: Count,
      sessions: Count,
    }),
    /** Gigabytes go into the object store meanwhile. */
    timeoutMs: 1_800_000,
  },
  /** The target: makes a copy that waits, and that nobody is told of. */
  receive: {
    request: Type.Object({ ...ofMove, peer: Peer, sandbox: SandboxEntry, snapshot: SnapshotEntry, env_vars: Environment }),
    reply: Empty,
    timeoutMs: ({ imagePullTimeoutMs }) => 1_800_000 + imagePullTimeoutMs,
  },
  /** The target: the sandbox is its own, and its processes continue there. Can be repeated. */
  confirm: { request: Type.Object(ofMove), reply: SandboxEntry, timeoutMs: 120_000 },
  /** The source: removes its copy, as the sandbox is another worker's. Can be repeated. */
  release: { request: Type.Object(ofMove), reply: Empty, timeoutMs: 120_000 },
  /** The source: goes on as before, unless the sandbox is another worker's. */
  takeBack: { request: Type.Object(ofMove), reply: Type.Object({ kept: Type.Boolean() }), timeoutMs: 60_000 },
} satisfies Declared;
