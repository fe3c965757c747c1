/** Everything that crosses NATS between gateways and workers: calls, their replies, directory entries, heartbeats. */
import Type, { type Static } from "typebox";
import { errorCodes, errorReasons } from "../errors.ts";
import { Environment } from "../schemas/environment.ts";
import { ExecutionStatus } from "../schemas/executions.ts";
import { FilePath, FileType, UploadTarget } from "../schemas/files.ts";
import { sandboxStates } from "../state/sandbox.ts";
import { archiveStates, snapshotStates } from "../state/snapshot.ts";

const Id = Type.String({ minLength: 1, maxLength: 64 });
/** What a process is called on the bus, and of what a subject is made: no wildcard and nothing empty in it. */
const Peer = Type.String({ maxLength: 128, pattern: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$" });
const StreamId = Type.String({ maxLength: 64, pattern: "^[A-Za-z0-9_-]+$" });
const Count = Type.Integer({ minimum: 0 });
const Millis = Type.Integer({ minimum: 0 });
const Access = Type.Union([Type.Literal("none"), Type.Literal("outbound")]);

/** Who asks, for isolation and logs. Part of every call. */
const caller = { request_id: Id, account_id: Id };

/** Where the receiving process takes the frames of a stream, and how many bytes it has room for at once. */
export const StreamTarget = Type.Object({ peer: Peer, stream_id: StreamId, window_bytes: Count });
export type StreamTarget = Static<typeof StreamTarget>;

/** A sandbox as the directory and the API show it; times in milliseconds since 1970. */
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
  error: Type.Optional(Type.String()),
  /** The reservation of the key's limit that this sandbox has used up. */
  reservation_id: Type.Optional(Id),
});
export type SandboxEntry = Static<typeof SandboxEntry>;

export const CreateCall = Type.Object({
  ...caller,
  key_id: Id,
  /** Made from the id when absent. */
  name: Type.Optional(Type.String()),
  image: Type.String(),
  cpu: Count,
  memory: Count,
  storage: Count,
  network: Access,
  env_vars: Environment,
  wait: Type.Boolean(),
  /** Comes back in the directory entry, so that the sandbox is known for the one that was reserved. */
  reservation_id: Type.Optional(Id),
  /** The gateway that holds the reservation for as long as it waits for the sandbox. */
  peer: Type.Optional(Peer),
});
export type CreateCall = Static<typeof CreateCall>;

/** Which of the reservations that a gateway was asked about it still works on. */
export const HeldReply = Type.Object({ ids: Type.Array(Id) });

export const DeleteCall = Type.Object({ ...caller, sandbox_id: Id });
export type DeleteCall = Static<typeof DeleteCall>;

export const ExecuteCall = Type.Object({
  ...caller,
  sandbox_id: Id,
  execution_id: Id,
  source: Type.Union([Type.Literal("sync"), Type.Literal("stream")]),
  command: Type.String(),
  working_dir: Type.Optional(Type.String()),
  env: Environment,
  timeout_ms: Millis,
  /** Bytes of each stream that are sent; the rest is read and dropped. Absent: everything is sent. */
  keep_bytes: Type.Optional(Count),
  to: StreamTarget,
});
export type ExecuteCall = Static<typeof ExecuteCall>;

/** How an execution ended: the last frame of its stream. */
export const ExecutionEnd = Type.Object({
  status: ExecutionStatus,
  exit_code: Type.Integer(),
  error: Type.Optional(Type.String()),
  code: Type.Optional(Type.Enum([...errorCodes])),
  reason: Type.Optional(Type.Enum([...errorReasons])),
  stdout_bytes: Count,
  stderr_bytes: Count,
  stdout_truncated: Type.Boolean(),
  stderr_truncated: Type.Boolean(),
  started_at_ms: Millis,
  ended_at_ms: Millis,
});
export type ExecutionEnd = Static<typeof ExecutionEnd>;

export const UploadCall = Type.Object({
  ...caller,
  sandbox_id: Id,
  /** The file comes on it, and what became of it is its end. */
  to: StreamTarget,
  /** Unknown while a multipart body sends the file before its path; then the end frame brings it. */
  path: Type.Optional(FilePath),
  size_hint: Type.Optional(Count),
});
export type UploadCall = Static<typeof UploadCall>;
/** The end frame of an upload's stream. */
export const UploadEnd = UploadTarget;
export type UploadEnd = Static<typeof UploadEnd>;
/** What the worker sends back over the stream when the file is in place. */
export const UploadDone = Type.Object({
  size: Count,
  /** Files and folders of an archive. */
  files: Type.Optional(Count),
});
export type UploadDone = Static<typeof UploadDone>;

export const DownloadCall = Type.Object({ ...caller, sandbox_id: Id, path: FilePath, archive: Type.Boolean(), to: StreamTarget });
export type DownloadCall = Static<typeof DownloadCall>;
export const DownloadAccepted = Type.Object({ size: Type.Optional(Count) });

export const StatCall = Type.Object({ ...caller, sandbox_id: Id, path: FilePath });
export type StatCall = Static<typeof StatCall>;
/** What stands at a path; the mode in octal. */
export const StatReply = Type.Object({ type: FileType, size: Count, mode: Type.String(), modified_at_ms: Type.Integer() });
export type StatReply = Static<typeof StatReply>;

export const StatusCall = Type.Object({ ...caller, sandbox_id: Id, from_ms: Millis, to_ms: Millis });
export type StatusCall = Static<typeof StatusCall>;
const Usage = Type.Object({ cpu_percent: Type.Number(), memory_mb: Type.Number() });
export const StatusReply = Type.Object({
  current: Type.Object({ ...Usage.properties, memory_percent: Type.Number(), disk_mb: Type.Number(), processes: Count }),
  history: Type.Array(Type.Object({ at_ms: Millis, ...Usage.properties })),
});
export type StatusReply = Static<typeof StatusReply>;

/** Bytes of a page of the log: what is answered at once is small beside what the bus takes, and takes no long time to be made. */
export const logsPageBytesMax = 1024 * 1024;
export const LogsCall = Type.Object({
  ...caller,
  sandbox_id: Type.Optional(Id),
  from_ms: Millis,
  to_ms: Millis,
  /** Only what comes after this entry. */
  after: Type.Optional(Type.Object({ started_at_ms: Millis, execution_id: Id })),
  limit: Type.Integer({ minimum: 1 }),
  /** One entry comes in any case. */
  bytes_max: Type.Integer({ minimum: 0, maximum: logsPageBytesMax }),
});
export type LogsCall = Static<typeof LogsCall>;
/** One execution as the log keeps it; every text is cut at 4 KiB. */
export const LogEntry = Type.Object({
  request_id: Id,
  execution_id: Id,
  account_id: Id,
  sandbox_id: Id,
  command: Type.String(),
  /** Of the whole command, where it is cut. */
  command_bytes: Type.Optional(Count),
  working_dir: Type.Optional(Type.String()),
  source: Type.Union([Type.Literal("sync"), Type.Literal("stream"), Type.Literal("session")]),
  status: ExecutionStatus,
  exit_code: Type.Integer(),
  started_at_ms: Millis,
  execution_time_ms: Millis,
  stdout: Type.String(),
  stderr: Type.String(),
  stdout_truncated: Type.Boolean(),
  stderr_truncated: Type.Boolean(),
  error: Type.Optional(Type.String()),
});
export type LogEntry = Static<typeof LogEntry>;
/** Newest first; `more`: there are entries after the last of these. */
export const LogsReply = Type.Object({ logs: Type.Array(LogEntry), total: Count, more: Type.Boolean() });
export type LogsReply = Static<typeof LogsReply>;

/** A layer: the changed files of one sandbox at one time, as they lie in an overlay's upper folder. Never changes. */
const LayerId = Type.String({ maxLength: 128, pattern: "^[A-Za-z0-9_@-]+$" });
const Layer = Type.Object({ id: LayerId, size_bytes: Count });
export type Layer = Static<typeof Layer>;

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
  cpu: Count,
  memory: Count,
  storage: Count,
  network: Access,
  env_vars: Environment,
});
export type Manifest = Static<typeof Manifest>;

/** A snapshot as the directory has it: any worker can restore it from this, and from the archives of its layers. */
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
  /** Of its own layer. */
  size_bytes: Count,
  memory: Type.Boolean(),
  /** How long the processes of the sandbox stood still. */
  pause_ms: Type.Number(),
  /** Whether all layers are in the object store. */
  archived: Type.Enum([...archiveStates]),
  /** The call that made it, so that a repetition finds it. */
  attempt_id: Type.Optional(Id),
  manifest: Manifest,
});
export type SnapshotEntry = Static<typeof SnapshotEntry>;

/** Takes a snapshot; replies with its entry when it is durable. */
export const SnapshotCall = Type.Object({
  ...caller,
  sandbox_id: Id,
  /** Made from the sandbox's name when absent. */
  name: Type.Optional(Type.String()),
  quick: Type.Boolean(),
  attempt_id: Id,
});
export type SnapshotCall = Static<typeof SnapshotCall>;

/** Makes a sandbox from a snapshot, with the same answers as a create. */
export const RestoreCall = Type.Object({
  ...caller,
  key_id: Id,
  /** Made from the id when absent. */
  name: Type.Optional(Type.String()),
  snapshot_id: Id,
  /** The worker that took the snapshot, and stored its layers. */
  worker_id: Id,
  manifest: Manifest,
  /** Lays the layers over another image. */
  image: Type.Optional(Type.String()),
  cpu: Count,
  memory: Count,
  storage: Count,
  env_vars: Environment,
  wait: Type.Boolean(),
  reservation_id: Id,
  /** The gateway that holds the reservation. */
  peer: Peer,
});
export type RestoreCall = Static<typeof RestoreCall>;

export const DeleteSnapshotCall = Type.Object({ ...caller, snapshot_id: Id });
export type DeleteSnapshotCall = Static<typeof DeleteSnapshotCall>;

/** Whether the worker takes new sandboxes; kept over its restarts. */
export const DrainCall = Type.Object({ request_id: Id, on: Type.Boolean() });
export type DrainCall = Static<typeof DrainCall>;

/** What is in the image store of a worker. */
export const ImagesCall = Type.Object({ request_id: Id });
export type ImagesCall = Static<typeof ImagesCall>;
const ImageEntry = Type.Object({
  id: Type.String(),
  names: Type.Array(Type.String()),
  size_bytes: Count,
  /** When a sandbox was last made of it by name; absent before the first time. */
  used_at_ms: Type.Optional(Millis),
  in_use: Type.Boolean(),
  default: Type.Boolean(),
});
export type ImageEntry = Static<typeof ImageEntry>;
export const ImagesReply = Type.Object({ images: Type.Array(ImageEntry) });
/** Removes an image that nothing needs. */
export const RemoveImageCall = Type.Object({ request_id: Id, id: Type.String() });
export type RemoveImageCall = Static<typeof RemoveImageCall>;

export const Empty = Type.Object({});

/** One answer of the host probe. `ok: false` is a limit or feature that this host lacks. */
export const HostCheck = Type.Object({ name: Type.String(), value: Type.String(), ok: Type.Boolean(), note: Type.Optional(Type.String()) });
export type HostCheck = Static<typeof HostCheck>;

/** Times by how long they were: see `shared/util/histogram.ts`. */
const Observed = Type.Object({ counts: Type.Array(Count), sum: Type.Number() });

/** What a worker has counted since its start: see `worker/counters.ts`. Times are in seconds. */
export const WorkerMetrics = Type.Object({
  create: Observed,
  start: Observed,
  run: Observed,
  pause: Observed,
  pool: Type.Object({ size: Count, hits: Count, misses: Count }),
  refused: Type.Record(Type.String(), Count),
});
export type WorkerMetrics = Static<typeof WorkerMetrics>;

/** A heartbeat. `peer` is new at every start of a process; `worker.id` is kept over restarts. */
export const Presence = Type.Object({
  peer: Peer,
  gone: Type.Optional(Type.Boolean()),
  /** Set by gateways, which share out the limits of keys among themselves. */
  gateway: Type.Optional(Type.Literal(true)),
  worker: Type.Optional(
    Type.Object({
      id: Id,
      /** It is stopping. */
      draining: Type.Boolean(),
      /** An operator has asked that it gets no new sandboxes. */
      cordoned: Type.Optional(Type.Boolean()),
      sandboxes: Count,
      sandboxes_max: Count,
      executions: Count,
      executions_total: Count,
      /** Live sessions whose command runs, and those started since the worker's start. */
      sessions: Type.Optional(Count),
      sessions_total: Type.Optional(Count),
      memory_free_bytes: Count,
      disk_free_bytes: Count,
      load_per_cpu: Type.Number(),
      rss_bytes: Count,
      /** Snapshots since the worker's start, and how long their sandboxes stood still, in all and at most. */
      snapshots: Type.Optional(Type.Object({ taken: Count, pause_ms_total: Type.Number(), pause_ms_max: Type.Number(), archive_pending_bytes: Count })),
      metrics: Type.Optional(WorkerMetrics),
      accepts: Type.Boolean(),
      host: Type.Array(HostCheck),
    }),
  ),
});
export type Presence = Static<typeof Presence>;
export type WorkerPresence = NonNullable<Presence["worker"]>;
