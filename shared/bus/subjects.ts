/** Every NATS subject and bucket name. No other file spells one. */
import { type Answerer, answererOf, type NamedVerb, type Verb, verbsOf } from "./contract/contract.ts";

/** The name in the certificate of an owned server, which has no host name. */
export const serverName = "sandgate-nats";

/**
 * What a process is called on the bus. It begins with the role, and for workers with the worker's id, because the server
 * lets each identity use only subjects that begin so: nobody can be spoken to, or speak, under the name of another.
 */
export const peers = {
  gateway: (process: string) => `gateway.${process}`,
  worker: (workerId: string, process: string) => `worker.${workerId}.${process}`,
} as const;

/**
 * Where calls arrive. A worker is named by `processOfWorker`, so that no call waits for a process that stands still and was
 * replaced, or by its id alone, as versions without claims do it; others by what their process is called.
 */
const callSubjects: Readonly<Record<Answerer, (name: string, verb: Verb | "*") => string>> = {
  worker: (name, verb) => `sandgate.worker.${name}.${verb}`,
  gateway: (peer, verb) => `sandgate.${peer}.${verb}`,
  process: (peer, verb) => `sandgate.${verb}.${peer}`,
};

const toGateways = [`sandgate.${peers.gateway("")}`, ...verbsOf("process").map((verb) => callSubjects.process(peers.gateway(""), verb))];

/** Under which name one process of a worker is called: its peer without the role. */
export const processOfWorker = (peer: string): string => peer.slice(peer.indexOf(".") + 1);

export const callSubject = (verb: Verb, name: string): string => callSubjects[answererOf(verb)](name, verb);
/** The same for a verb that workers ask by name. @param workerId who asks, or a pattern */
export const namedCallSubject = (verb: NamedVerb, name: string, workerId: string): string => `${callSubject(verb, name)}.${workerId}`;
/** Whether it is a gateway that replies to what is asked on the subject. */
export const isToGateway = (subject: string): boolean => toGateways.some((prefix) => subject.startsWith(prefix));
/** All calls to one worker or gateway. */
export const callsTo = (answerer: "worker" | "gateway", name: string): string => callSubjects[answerer](name, "*");

export const subjects = {
  /** Stream frames and credits to one process (`peer`), which is new at every start. */
  stream: (peer: string, streamId: string) => `sandgate.stream.${peer}.${streamId}`,
  /** Heartbeats of one process (`peer`), or of those that a pattern in its place means. */
  presence: (peer: string) => `sandgate.presence.${peer}`,
  /** Where replies to one identity arrive: to a gateway, or to the worker of that id. */
  inbox: (identity: string) => `_INBOX.${identity}`,
  /** Where gateways of one identity hear what gateways reply, which may say nothing where they hear workers. */
  gatewayReplies: (identity: string) => `_INBOX.gateways.${identity}`,
} as const;

const presencePrefix = subjects.presence("");

/** Whose heartbeat it is. */
export const peerOfPresence = (subject: string): string => subject.slice(presencePrefix.length);

/** The id of the worker that a process belongs to; undefined for gateways. */
export function workerOfPeer(peer: string): string | undefined {
  const [role, workerId] = peer.split(".");
  return role === "worker" ? workerId : undefined;
}

/** The last token of a subject, such as the id of a stream. */
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
  workers: "sandgate_workers",
  /** Written again and again by every gateway, to see whether anything can be written at all. */
  pulse: "sandgate_pulse",
} as const;

/** The bucket with the machines of an installation with several NATS servers, in an account of these servers alone. */
export const memberBucket = "sandgate_members";

export type Bucket = (typeof buckets)[keyof typeof buckets] | typeof memberBucket;

const MiB = 1024 * 1024;
/**
 * How large a bucket may become on disk. Entries take a few hundred bytes, those of snapshots and kept answers a few thousand:
 * room for some hundred thousand of each. A full bucket refuses what is new, and what makes it smaller is still taken.
 */
export const bucketBytesMax: Readonly<Record<Bucket, number>> = {
  [buckets.accounts]: 256 * MiB,
  [buckets.keys]: 256 * MiB,
  [buckets.keyUse]: 128 * MiB,
  [buckets.logins]: 256 * MiB,
  [buckets.sessions]: 256 * MiB,
  [buckets.idempotency]: 1024 * MiB,
  [buckets.snapshots]: 1024 * MiB,
  [buckets.sandboxes]: 512 * MiB,
  [buckets.workers]: 16 * MiB,
  [buckets.pulse]: 1 * MiB,
  [memberBucket]: 16 * MiB,
};

/** Buckets in which each worker writes the entries of what is its own. */
export const entryBuckets = [buckets.sandboxes, buckets.snapshots] as const;

/** What workers need, and gateways make: their entries, and under each worker's id the claim to it. */
export const workerBuckets = [...entryBuckets, buckets.workers] as const;

/** The key of a directory entry, or of all entries of a worker (`*`): a worker can only write those that begin with its id. */
export const entryKey = (workerId: string, id: string): string => `${workerId}.${id}`;

/** The stream behind a bucket, and the subject of one key. */
export const bucketStream = (bucket: Bucket): string => `KV_${bucket}`;
export const bucketSubject = (bucket: Bucket, key: string): string => `$KV.${bucket}.${key}`;

/** The JetStream object store of snapshot layers. */
export const layerStore = "sandgate_layers";

/**
 * What the store of layers consists of: a stream with a record of each layer, and its bytes in pieces. Both carry the id of the
 * worker whose snapshots need the layer: it stores them itself, and no other worker can.
 */
export const layerSubjects = {
  stream: `OBJ_${layerStore}`,
  all: [`$O.${layerStore}.C.>`, `$O.${layerStore}.M.>`],
  record: (workerId: string, layerId: string) => `$O.${layerStore}.M.${workerId}.${layerId}`,
  /** The pieces of one attempt to store the layer; `*` for those of all attempts. */
  pieces: (workerId: string, layerId: string, attempt: string) => `$O.${layerStore}.C.${workerId}.${layerId}.${attempt}`,
  /** As versions before 0.2 stored them, for all workers together. No worker can write there. */
  formerRecord: (layerId: string) => `$O.${layerStore}.M.${Buffer.from(layerId).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`,
  formerPieces: (layerId: string, attempt: string) => `$O.${layerStore}.C.${layerId}.${attempt}`,
} as const;

/**
 * The stream of who changed what. Each account's entries have a subject of their own, so that nobody can push out those of others
 * by doing much; strangers, such as who fails to log in, share one, and so do commands on the machine itself.
 */
export const auditSubjects = {
  stream: "sandgate_audit",
  all: "sandgate.audit.*",
  /** @param who an account, or how one who has none was known */
  of: (who: string) => `sandgate.audit.${who}`,
} as const;
/** How large the audit record may become on disk, and how many entries are kept of one caller: some hundred bytes each. */
export const auditBytesMax = 256 * MiB;
export const auditEntriesPerCaller = 20_000;

/** All streams that gateways use. */
export const allStreams: readonly string[] = [...Object.values(buckets).map(bucketStream), auditSubjects.stream, layerSubjects.stream];

/** JetStream's calls, below the prefix of an account's own (`$JS.API`). */
export const storeCalls = {
  prefix: "$JS.API",
  info: (stream: string) => `STREAM.INFO.${stream}`,
  /** The message of a number, or the next one of a subject from there on. */
  get: (stream: string) => `DIRECT.GET.${stream}`,
  /** The last message of a subject. */
  getLast: (stream: string, subject: string) => `DIRECT.GET.${stream}.${subject}`,
  /** A copy of a whole stream, and a stream made from one. */
  snapshot: (stream: string) => `STREAM.SNAPSHOT.${stream}`,
  restore: (stream: string) => `STREAM.RESTORE.${stream}`,
  /** What the account has and may have. */
  account: "INFO",
  /** Without messages, or without those of some subjects. */
  purge: (stream: string) => `STREAM.PURGE.${stream}`,
  deleteMessage: (stream: string) => `STREAM.MSG.DELETE.${stream}`,
  /** What makes a stream, sets its bounds, and reads it where it is led. */
  ofMakers: (stream: string) => ["INFO", "CREATE", "UPDATE", "MSG.GET"].map((call) => `STREAM.${call}.${stream}`),
  /** What a watch of a stream takes. */
  ofWatchers: (stream: string) => [`CONSUMER.CREATE.${stream}.>`, ...["INFO", "DELETE"].map((call) => `CONSUMER.${call}.${stream}.*`)],
} as const;

/** Where NATS servers tell of the asker's own account, each for itself. */
export const accountStatistics = "$SYS.REQ.ACCOUNT.PING.STATZ";

/** Where a watch of a stream says that it keeps up. */
export const flowControlOf = (stream: string): string => `$JS.FC.${stream}.>`;

/** What a worker puts in front of everything that it asks of the storage: see `shared/bus/permissions.ts`. */
export const storePrefix = "sandgate.store";
