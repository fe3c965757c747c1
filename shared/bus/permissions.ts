/**
 * What each role may do on the bus: a list of what is allowed, from which the owned server's configuration is made.
 *
 * A gateway writes accounts, keys and directory entries, and gives workers commands. It speaks for no worker, hears no replies to
 * other machines' gateways, and removes no stream. What it has the storage send elsewhere, nobody takes (`Bus.subscribe`).
 *
 * A worker has two identities, because permissions alone do not hold the storage: JetStream sends its replies, with bytes of the
 * asker's choice, to whatever reply subject it was asked with, and checks no permission for it. So
 * - for calls, heartbeats and streams, a user among the gateways' with permissions. It cannot reach JetStream.
 * - for storage, an account of its own. Each subject of the storage that the worker may use is imported into it, and a reply
 *   can go nowhere but back into that account, where nobody else is.
 *
 * Root's commands on machines with a NATS server may do everything.
 */
import { contract, isNamed, type Verb, verbsOf } from "./contract/contract.ts";
import type { Declared } from "./contract/declared.ts";
import {
  accountStatistics,
  allStreams,
  auditSubjects,
  type Bucket,
  bucketStream,
  bucketSubject,
  buckets,
  callSubject,
  callsTo,
  entryBuckets,
  entryKey,
  flowControlOf,
  layerSubjects,
  namedCallSubject,
  peers,
  processOfWorker,
  storeCalls,
  storePrefix,
  subjects,
} from "./subjects.ts";

/** Longer than any call may take: a worker may send one answer to a question so long after it. */
const answerWithin = "2h";

/** The account of gateways, of the storage, and of what workers say and hear. */
export const mainAccount = "SANDGATE";
/** The account in which the machines with a NATS server keep the list of all machines. Gateways are not in it. */
export const clusterAccount = "SANDGATE_CLUSTER";
/** The server's own account, in which machines with a NATS server take one out of the cluster. */
export const systemAccount = "SANDGATE_SYSTEM";
/** The account in which a worker asks the storage. */
export const storeAccount = (workerId: string): string => `STORE_${workerId}`;

/** A worker, and the public halves of its identities. */
export interface WorkerIdentity {
  readonly id: string;
  readonly nkey: string;
  readonly storeNkey: string;
}

/** The public halves of the identities of a machine with a NATS server, where there are several. */
export interface NodeIdentity {
  readonly nkey: string;
  readonly systemNkey: string;
}

/** The public halves of the identities of the parts and machines. */
export interface Identities {
  readonly gateways: readonly string[];
  readonly workers: readonly WorkerIdentity[];
  readonly nodes?: readonly NodeIdentity[];
  /** Of root's commands. */
  readonly roots: readonly string[];
}

/** What workers may ask, of gateways alone. */
const askedByWorkers = (Object.keys(contract) as Verb[]).filter((verb) => (contract as Declared)[verb]?.byWorkers);

/** What a worker may say and hear, in the words of the server's configuration. */
export function workerPermissions(id: string) {
  return {
    publish: {
      allow: [
        subjects.presence(peers.worker(id, "*")),
        subjects.stream(peers.gateway("*"), "*"),
        ...askedByWorkers.map((verb) => (isNamed(verb) ? namedCallSubject(verb, peers.gateway("*"), id) : callSubject(verb, peers.gateway("*")))),
      ],
    },
    subscribe: {
      allow: [
        callsTo("worker", id),
        callsTo("worker", processOfWorker(peers.worker(id, "*"))),
        subjects.stream(peers.worker(id, "*"), "*"),
        subjects.presence(peers.gateway("*")),
        ...verbsOf("process").map((verb) => callSubject(verb, peers.worker(id, "*"))),
        `${subjects.inbox(workerInbox(id))}.>`,
      ],
    },
    allow_responses: { max: 1, expires: answerWithin },
  };
}

/** Whose inbox it is, for `subjects.inbox`. */
export const workerInbox = (id: string): string => `worker.${id}`;
/** The same for the gateways of a machine, which have one identity. */
export const gatewayInbox = (nkey: string): string => nkey;
/** As gateways before 0.2 have it, each for itself. */
const formerGatewayInbox = peers.gateway("*");

const anyWorker = peers.worker("*", "*");
const anyGateway = peers.gateway("*");

/**
 * Where a gateway replies: to workers, which ask gateways alone, and to gateways. It hears what any gateway is asked, so it replies
 * in another one's place no better for that. Whoever may respond to whatever has a reply subject (`allow_responses`) has the server
 * remember that of each entry a watch brings, and look through all of them for each further message once there are thousands.
 */
const askers = [subjects.inbox(workerInbox("*")), subjects.gatewayReplies("*"), subjects.inbox(formerGatewayInbox)];

/** What a gateway may say and hear. @param nkey of its machine */
export function gatewayPermissions(nkey: string) {
  const named = verbsOf("gateway").filter(isNamed);
  return {
    publish: {
      allow: [
        callsTo("worker", "*"),
        callsTo("worker", processOfWorker(anyWorker)),
        callsTo("gateway", anyGateway),
        ...verbsOf("process").flatMap((verb) => [anyWorker, anyGateway].map((peer) => callSubject(verb, peer))),
        subjects.presence(anyGateway),
        subjects.stream(anyWorker, "*"),
        ...askers.map((inbox) => `${inbox}.>`),
        accountStatistics,
        ...gatewayStorage(),
      ],
    },
    subscribe: {
      allow: [
        callsTo("gateway", anyGateway),
        ...named.map((verb) => namedCallSubject(verb, anyGateway, "*")),
        ...verbsOf("process").map((verb) => callSubject(verb, anyGateway)),
        subjects.presence(">"),
        subjects.stream(anyGateway, "*"),
        ...[subjects.inbox(gatewayInbox(nkey)), subjects.gatewayReplies(gatewayInbox(nkey)), subjects.inbox(formerGatewayInbox)].map((inbox) => `${inbox}.>`),
      ],
    },
  };
}

/**
 * What a gateway may write and ask of the storage: entries of every bucket, the audit record and the records of layers, not the
 * layers themselves. It makes the streams and gives them their size, and removes single messages where it tidies up.
 */
function gatewayStorage(): string[] {
  const { stream: layers, record } = layerSubjects;
  const bucketNames = Object.values(buckets);
  const calls = [
    ...allStreams.flatMap((stream) => storeCalls.ofMakers(stream)),
    ...bucketNames.flatMap((bucket) => storeCalls.ofWatchers(bucketStream(bucket))),
    ...bucketNames.map((bucket) => storeCalls.deleteMessage(bucketStream(bucket))),
    storeCalls.get(layers),
    ...layerSubjects.all.map((subject) => storeCalls.getLast(layers, subject)),
    storeCalls.purge(layers),
    // Gateways before 0.2 do not start without it.
    storeCalls.account,
  ];
  return [
    ...bucketNames.map((bucket) => bucketSubject(bucket, ">")),
    auditSubjects.all,
    record("*", "*"),
    ...calls.map((call) => `${storeCalls.prefix}.${call}`),
    ...bucketNames.map((bucket) => flowControlOf(bucketStream(bucket))),
  ];
}

/** A subject of the storage that a worker may use, and under which name it does so. */
interface StoreSubject {
  readonly subject: string;
  readonly as: string;
}

const written = (subject: string): StoreSubject => ({ subject, as: `${storePrefix}.${subject}` });
const asked = (call: string): StoreSubject => ({ subject: `${storeCalls.prefix}.${call}`, as: `${storePrefix}.${call}` });

/**
 * What a worker may write and ask. No deletion, purge, change or consumer of a stream: a consumer would deliver to any
 * subject of the storage's account. It may read the layers of all workers, because any of them restores any snapshot.
 */
export function workerStorage(id: string): StoreSubject[] {
  const ownIn = (bucket: Bucket, key: string): StoreSubject[] => {
    const [stream, own] = [bucketStream(bucket), bucketSubject(bucket, key)];
    return [written(own), asked(storeCalls.getLast(stream, own)), asked(storeCalls.info(stream))];
  };
  const entries = entryBuckets.flatMap((bucket) => ownIn(bucket, entryKey(id, "*")));
  const claim = ownIn(buckets.workers, id);
  const { stream, record, pieces, all } = layerSubjects;
  const layers = [written(record(id, "*")), written(pieces(id, "*", "*")), asked(storeCalls.info(stream)), asked(storeCalls.get(stream))];
  return [...entries, ...claim, ...layers, ...all.map((subject) => asked(storeCalls.getLast(stream, subject)))];
}

/** What is brought into the account and nothing beside it, such as the server's own subjects. */
const storePermissions = (id: string) => ({
  publish: { allow: [`${storePrefix}.>`] },
  subscribe: { allow: [`${subjects.inbox(workerInbox(id))}.>`] },
});

/** The accounts of a server, for its configuration. */
export function accountsOf({ gateways, workers, roots, nodes = [] }: Identities): Record<string, unknown> {
  const users = [
    ...roots.map((nkey) => ({ nkey })),
    ...gateways.map((nkey) => ({ nkey, permissions: gatewayPermissions(nkey) })),
    ...workers.map(({ id, nkey }) => ({ nkey, permissions: workerPermissions(id) })),
  ];
  const sharedBy = new Map<string, string[]>();
  for (const { id } of workers) {
    for (const { subject } of workerStorage(id)) sharedBy.set(subject, [...(sharedBy.get(subject) ?? []), storeAccount(id)]);
  }
  const exports = [...sharedBy].map(([service, accounts]) => ({ service, accounts }));
  const stores = workers.map(({ id, storeNkey }) => {
    const imports = workerStorage(id).map(({ subject, as }) => ({ service: { account: mainAccount, subject }, to: as }));
    return [storeAccount(id), { users: [{ nkey: storeNkey, permissions: storePermissions(id) }], imports }] as const;
  });
  return {
    [mainAccount]: { jetstream: "enabled", users, exports },
    // They are there from the beginning, because a running server makes no other account its own.
    [clusterAccount]: { jetstream: "enabled", users: nodes.map(({ nkey }) => ({ nkey })) },
    [systemAccount]: { users: nodes.map(({ systemNkey }) => ({ nkey: systemNkey })) },
    ...Object.fromEntries(stores),
  };
}
