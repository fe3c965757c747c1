/**
 * What each role may do on the bus: a list of what is allowed, from which the owned server's configuration is made.
 *
 * A gateway may do everything: it is what accounts, keys and directory entries are written by. A worker has two identities,
 * because permissions alone do not hold the storage: JetStream sends its replies, with bytes of the asker's choice, to
 * whatever reply subject it was asked with, and checks no permission for it. So
 * - for calls, heartbeats and streams, a user among the gateways' with permissions. It cannot reach JetStream.
 * - for storage, an account of its own. Each subject of the storage that the worker may use is imported into it, and a reply
 *   can go nowhere but back into that account, where nobody else is.
 */
import { contract, isNamed, type Verb, verbsOf } from "./contract/contract.ts";
import type { Declared } from "./contract/declared.ts";
import {
  type Bucket,
  bucketStream,
  bucketSubject,
  buckets,
  callSubject,
  callsTo,
  entryBuckets,
  entryKey,
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
export function accountsOf(gatewayNkeys: readonly string[], workers: readonly WorkerIdentity[], nodes: readonly NodeIdentity[] = []): Record<string, unknown> {
  const users = [...gatewayNkeys.map((nkey) => ({ nkey })), ...workers.map(({ id, nkey }) => ({ nkey, permissions: workerPermissions(id) }))];
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
