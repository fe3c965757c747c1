/** The entries of the directory: what workers tell everybody of themselves, their sandboxes and snapshots. Times are milliseconds since 1970. */
import Type, { type Static } from "typebox";
import { Environment } from "../schemas/environment.ts";
import { sandboxStates } from "../state/sandbox.ts";
import { archiveStates, snapshotStates } from "../state/snapshot.ts";
import { Access, Count, Id, Isolation, Millis, Peer } from "./contract/fields.ts";

/** A layer: the changed files of one sandbox at one time, as they lie in an overlay's upper folder. Never changes. */
const LayerId = Type.String({ maxLength: 128, pattern: "^[A-Za-z0-9_@-]+$" });

/** What is known of a sandbox on its way by those who have a copy of it. */
const SandboxMove = Type.Object({
  id: Id,
  /** The worker that it leaves. */
  from: Id,
  /** The gateway that carries it out, which is asked whether it still does. */
  peer: Peer,
  /** What the object store keeps for it meanwhile, under that worker's name. */
  layers: Type.Optional(Type.Array(LayerId)),
  /** The worker that is asked to take it: no other one can have the move given up. Written by that gateway into the entry. */
  to: Type.Optional(Id),
  /** Nobody may decide any more that another worker has it. Written by a gateway into the entry. */
  given_up: Type.Optional(Type.Literal(true)),
});
export type SandboxMove = Static<typeof SandboxMove>;

/** A sandbox as the directory and the API show it. */
export const SandboxEntry = Type.Object({
  id: Id,
  name: Type.String(),
  account_id: Id,
  key_id: Id,
  worker_id: Id,
  status: Type.Enum([...sandboxStates]),
  image: Type.String(),
  created_at_ms: Millis,
  cpu: Count,
  memory: Count,
  storage: Count,
  network: Access,
  isolation: Isolation,
  error: Type.Optional(Type.String()),
  /** The reservation of the key's limit that this sandbox has used up. */
  reservation_id: Type.Optional(Id),
  /** Whether it was made with the processes of a snapshot, or is going to be. Absent for no. */
  memory_restored: Type.Optional(Type.Boolean()),
  /** Why it was not, where that was asked for. */
  memory_reason: Type.Optional(Type.String()),
  /** On its way to another worker. */
  move: Type.Optional(SandboxMove),
  /** Another worker has it: written once, by a gateway, in place of the revision that was held for it. That alone decides. */
  moved_to: Type.Optional(Id),
  /** That worker's own entry is there; this one only stays until its worker has removed its copy. */
  handed_over: Type.Optional(Type.Literal(true)),
});
export type SandboxEntry = Static<typeof SandboxEntry>;

const Layer = Type.Object({ id: LayerId, size_bytes: Count });
export type Layer = Static<typeof Layer>;

/** An image of processes, stored like a layer: sealed by the helper of its worker, for those of the installation. */
const MemoryLayer = Type.Object({ id: LayerId, size_bytes: Count, identity: Count });

/** The image below the layers, with the part of its configuration that a container without an image must be given. */
const BaseImage = Type.Object({
  /** The image's own id (SHA-256 in hex): names move, this does not. */
  id: Type.String(),
  env: Type.Array(Type.String()),
  working_dir: Type.String(),
  user: Type.String(),
  /** The layer with its content, where that was fetched from another worker. */
  layer: Type.Optional(LayerId),
});
export type BaseImage = Static<typeof BaseImage>;

/** Everything that a sandbox is made again from. */
export const Manifest = Type.Object({
  image: Type.String(),
  base: BaseImage,
  /** Topmost first. */
  layers: Type.Array(Layer),
  /** The layers in the object store, if they are others: the topmost ones are differences from earlier snapshots, which share those below. */
  stored: Type.Optional(Type.Array(Layer)),
  /** What its processes continue from on other workers; absent where there is none, or it cannot leave its worker. */
  memory_image: Type.Optional(MemoryLayer),
  cpu: Count,
  memory: Count,
  storage: Count,
  network: Access,
  isolation: Isolation,
  env_vars: Environment,
});
export type Manifest = Static<typeof Manifest>;

/** A snapshot: any worker can restore it from this, and from the archives of its layers. */
export const SnapshotEntry = Type.Object({
  id: Id,
  name: Type.String(),
  account_id: Id,
  /** The worker that made it and has its layers. */
  worker_id: Id,
  source_sandbox_id: Id,
  source_sandbox_name: Type.String(),
  status: Type.Enum([...snapshotStates]),
  created_at_ms: Millis,
  consistency: Type.Union([Type.Literal("application"), Type.Literal("crash")]),
  /** Of its own layer, and of the image of its memory. */
  size_bytes: Count,
  /** What its layers take on its worker's disk: alone, and together with sandboxes and other snapshots. Absent if the worker cannot tell. */
  exclusive_bytes: Type.Optional(Count),
  shared_bytes: Type.Optional(Count),
  memory: Type.Boolean(),
  /** Why it has no memory, where that was asked for. */
  memory_reason: Type.Optional(Type.String()),
  /** The number of the image of its memory, on its worker. */
  memory_image: Type.Optional(Count),
  /** How long the processes of the sandbox stood still. */
  pause_ms: Type.Number(),
  /** Whether all layers are in the object store. */
  archived: Type.Enum([...archiveStates]),
  /** The call that made it, so that a repetition finds it. */
  attempt_id: Type.Optional(Id),
  /** Of a snapshot that is not in the directory: it is needed for as long as this gateway holds this reservation. */
  temporary: Type.Optional(Type.Object({ peer: Peer, reservation_id: Id })),
  /** The layer that its sandbox's own files began as, if that was one of this worker. */
  origin: Type.Optional(LayerId),
  manifest: Manifest,
});
export type SnapshotEntry = Static<typeof SnapshotEntry>;

/** Whose a worker's id is: one machine's, and there of the process that was started last. */
export const WorkerClaim = Type.Object({
  /** A random id of the machine's own. Absent where an operator has forgotten a worker that never made a claim. */
  home: Type.Optional(Id),
  /** Grows with every start, so that of two processes everybody knows which one has taken the other's place. */
  epoch: Count,
  peer: Type.Optional(Peer),
  claimed_at_ms: Millis,
  /** Of the machine's start in which the process began. A machine with a copy of the disk has the same home, and another one of these. */
  boot: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  /** A process of another start of the machine wants the id, and waits for this one, if it lives, to claim it again. */
  asked_at_ms: Type.Optional(Millis),
  /** The process has stopped in good order. */
  left_at_ms: Type.Optional(Millis),
  /** An operator has given the worker up: its sandboxes are no longer its own. */
  forgotten_at_ms: Type.Optional(Millis),
});
export type WorkerClaim = Static<typeof WorkerClaim>;
