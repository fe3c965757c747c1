/** Every NATS subject and bucket name. No other file spells one. */

/** Calls that a worker answers, one subject each. */
export const workerVerbs = [
  "create",
  "delete",
  "execute",
  "upload",
  "download",
  "stat",
  "status",
  "logs",
  "drain",
  "images",
  "removeImage",
  "snapshot",
  "restore",
  "deleteSnapshot",
  "sessionStart",
  "sessionAttach",
  "sessions",
] as const;
export type WorkerVerb = (typeof workerVerbs)[number];

/** Calls between gateways, one subject each. */
export const gatewayVerbs = ["take", "return", "reserve", "settle", "held", "takeover", "adopt", "usage", "redeem"] as const;
export type GatewayVerb = (typeof gatewayVerbs)[number];

export const subjects = {
  /** Request/reply to one worker, which keeps its id over restarts. */
  worker: (workerId: string, verb: WorkerVerb | "*") => `sandgate.worker.${workerId}.${verb}`,
  /** From one gateway to another (`peer`). */
  gateway: (peer: string, verb: GatewayVerb | "*") => `sandgate.gateway.${peer}.${verb}`,
  /** Stream frames and credits to one process (`peer`), which is new at every start. */
  stream: (peer: string, streamId: string) => `sandgate.stream.${peer}.${streamId}`,
  /** Heartbeats of gateways and workers. */
  presence: "sandgate.presence",
  /** Asks whether a process (`peer`) is there. */
  alive: (peer: string) => `sandgate.alive.${peer}`,
} as const;

/** The last token of a subject: the verb of a worker call or the id of a stream. */
export function lastToken(subject: string): string {
  return subject.slice(subject.lastIndexOf(".") + 1);
}

/** JetStream key-value buckets. */
export const buckets = {
  accounts: "sandgate_accounts",
  keys: "sandgate_keys",
  keyUse: "sandgate_key_use",
  logins: "sandgate_logins",
  sessions: "sandgate_sessions",
  idempotency: "sandgate_idempotency",
  snapshots: "sandgate_snapshots",
  sandboxes: "sandgate_sandboxes",
} as const;

/** The JetStream object store of snapshot layers, one object each under the layer's id. */
export const layerStore = "sandgate_layers";

/** What an object store consists of: a stream with a record of each object, and its bytes in pieces. */
export const layerSubjects = {
  stream: `OBJ_${layerStore}`,
  record: (layerId: string) => `$O.${layerStore}.M.${Buffer.from(layerId).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`,
  /** The pieces of one attempt to store the layer, named by what the record calls `nuid`; `*` for those of all attempts. */
  pieces: (layerId: string, attempt: string) => `$O.${layerStore}.C.${layerId}.${attempt}`,
} as const;

export type Bucket = (typeof buckets)[keyof typeof buckets];
