/** What of an installation is in a backup, by the names that it has there. Nothing else is ever restored. */
import { basename, join, relative } from "node:path";
import { auditSubjects, type Bucket, bucketStream, buckets, layerSubjects } from "../../shared/bus/subjects.ts";
import { settingsFileIn } from "../../shared/settings-file.ts";
import type { Instance, PartName } from "../base/instance.ts";
import { secretsOf } from "../supervisor/bus-identities.ts";

/** A small file. */
export interface KeptFile {
  readonly name: string;
  readonly path: string;
  /** The part that reads it as well, or everybody; the installation's own when absent. */
  readonly reader?: PartName | "everybody";
  /** Whether it is in the worker's own folder, which nobody else touches. */
  readonly isWorkers?: true;
}

/** Browsers have to log in again: a log-out since the backup would be undone otherwise. What gateways write in order to see whether they can is nothing. */
const leftOut: readonly Bucket[] = [buckets.sessions, buckets.pulse];
/** The directory, which is copied before the records of the worker: what is in it must be in those as well. */
const first: readonly Bucket[] = [buckets.sandboxes, buckets.snapshots];

/** The streams to be copied before the worker's records, and after them. Those in the object store come last: records name them. */
export const streamsBefore: readonly string[] = first.map(bucketStream);
export const streamsAfter: readonly string[] = [
  ...Object.values(buckets)
    .filter((bucket) => ![...first, ...leftOut].includes(bucket))
    .map(bucketStream),
  auditSubjects.stream,
  layerSubjects.stream,
];

/** The two files of a stream. */
export const streamFiles = (stream: string) => ({ shape: `streams/${stream}.json`, content: `streams/${stream}.snapshot` });

export const recordsName = "data/worker/lmdb/data.mdb";
/** The folder of the records. */
export const recordsDir = ({ paths }: Pick<Instance, "paths">): string => join(paths.data, "worker", "lmdb");
/** The list of other machines. */
export const membersName = "data/nats-members.json";
export const homeName = "data/worker/worker-home";
/** Those of `npm start`, where it has any in its data directory. */
export const settingsName = "data/sandgate.env";
/** Where the settings of services are in a backup. */
export const settingsPrefix = "settings/";

/** The small files. @param workerId of the worker on this machine, if there is one */
export function keptFiles(instance: Instance, workerId: string | undefined): KeptFile[] {
  const { paths } = instance;
  const secrets = secretsOf(instance);
  const named = (path: string, rest: Pick<KeptFile, "reader" | "isWorkers"> = {}): KeptFile => ({ name: `data/${relative(paths.data, path)}`, path, ...rest });
  const ofWorker = (id: string): KeptFile[] => [
    named(join(paths.supervisor, "worker-id")),
    named(secrets.worker(id), { reader: "worker" }),
    named(join(paths.data, "worker", basename(homeName)), { isWorkers: true }),
  ];
  return [
    named(settingsFileIn(paths.data)),
    named(paths.apiKey),
    named(paths.natsMembers),
    named(paths.memoryKey),
    named(secrets.gateway, { reader: "gateway" }),
    named(secrets.certificate, { reader: "everybody" }),
    named(secrets.serverKey, { reader: "nats" }),
    ...(workerId ? ofWorker(workerId) : []),
  ];
}
