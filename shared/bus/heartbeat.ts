/** What processes tell of themselves every second. */
import Type, { type Static } from "typebox";
import { imageKeyCharacters } from "../util/image.ts";
import { Count, Id, Millis, Peer } from "./contract/fields.ts";

/** The most images that a heartbeat names. */
export const imageKeysMax = 256;

/** One answer of the host probe. `ok: false` is a limit or feature that this host lacks. */
export const HostCheck = Type.Object({ name: Type.String(), value: Type.String(), ok: Type.Boolean(), note: Type.Optional(Type.String()) });
export type HostCheck = Static<typeof HostCheck>;

/** Times by how long they were: see `shared/util/histogram.ts`. */
const Observed = Type.Object({
  counts: Type.Array(Count),
  sum: Type.Number(),
  exemplars: Type.Optional(
    Type.Array(Type.Object({ bucket: Count, trace_id: Type.String({ pattern: "^[0-9a-f]{32}$" }), seconds: Type.Number(), at_ms: Millis }), { maxItems: 64 }),
  ),
});

/** What a worker has counted since its start: see `worker/counters.ts`. Times are in seconds. */
const WorkerMetrics = Type.Object({
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
  /** The name of its machine. */
  host: Type.Optional(Type.String()),
  /** How often its connection to the bus was lost: what was on the way to it or from it is lost as well. */
  outages: Type.Optional(Count),
  /** Set by gateways, which share out the limits of keys among themselves. */
  gateway: Type.Optional(Type.Literal(true)),
  worker: Type.Optional(
    Type.Object({
      id: Id,
      /** Of its claim to the id. Versions before claims have none. */
      epoch: Type.Optional(Count),
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
      /** Keys of the names of images that it has (`keyOfName`), so that sandboxes of them come here. Not of the default image, which all have. */
      images: Type.Optional(Type.Array(Type.String({ maxLength: imageKeyCharacters }), { maxItems: imageKeysMax })),
      /** Whether it can run strong sandboxes. */
      strong: Type.Optional(Type.Boolean()),
      accepts: Type.Boolean(),
      /** It has no disk space for new sandboxes. It accepts them all the same, to say so where no other worker is there. */
      disk_full: Type.Optional(Type.Boolean()),
      host: Type.Array(HostCheck),
    }),
  ),
});
export type Presence = Static<typeof Presence>;
export type WorkerPresence = NonNullable<Presence["worker"]>;
