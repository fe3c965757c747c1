/** Every NATS subject and bucket name. No other file spells one. */

/** Calls that a worker answers, one subject each. */
export const workerVerbs = ["create", "delete", "execute", "upload", "download", "status", "logs", "drain", "snapshot", "restore", "deleteSnapshot"] as const;
export type WorkerVerb = (typeof workerVerbs)[number];

/** Calls between gateways, one subject each. */
export const gatewayVerbs = ["take", "return", "reserve", "settle", "held", "takeover", "adopt", "usage"] as const;
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

export type Bucket = (typeof buckets)[keyof typeof buckets];
