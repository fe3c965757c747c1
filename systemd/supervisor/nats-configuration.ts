/** The configuration of a NATS server that the installation starts. */
import { basename } from "node:path";
import { publicNkey } from "../../shared/bus/nkey.ts";
import { accountsOf, type NodeIdentity, systemAccount } from "../../shared/bus/permissions.ts";
import { auditBytesMax, bucketBytesMax } from "../../shared/bus/subjects.ts";
import type { Config } from "../../shared/config.ts";
import { withPort } from "../../shared/util/host.ts";
import type { Instance } from "../base/instance.ts";
import { credentialOf } from "../base/unit-credentials.ts";
import type { Place } from "../cluster/place.ts";
import type { Member } from "../fleet/members.ts";
import { gatewayIdentity, rootIdentity, secretsOf, serverCertificate, workerIdentity } from "./bus-identities.ts";
import { natsVersion } from "./nats-version.ts";

// Fits a request body of the largest default size with every character escaped.
const maxPayloadBytes = 8 * 1024 * 1024;
/** The server's default of two seconds is too short for a busy machine. */
const tlsTimeoutS = 15;
const clusterName = "sandgate";

export interface Wanted {
  /** The workers of this machine. */
  readonly workerIds: readonly string[];
  readonly port: number;
  readonly members: readonly Member[];
  readonly place?: Place;
  /** Where it listens instead of where others expect it. */
  readonly host?: string;
  /** Its store instead of the usual one. */
  readonly store?: string;
  /** A copy of its key, where it can read it. */
  readonly key?: string;
}

/** The configuration of a server, in its own format. */
export async function configurationOf(instance: Instance, wanted: Wanted): Promise<string> {
  const { config, paths } = instance;
  const { workerIds, port, members, place, host = config.natsHost, store = paths.nats, key = keyForServer(instance, place) } = wanted;
  const tls = { cert_file: certificateOf(instance, place), key_file: key, timeout: tlsTimeoutS };
  const cluster = place?.mode === "clustered" ? clusterOf(instance, place, tls) : undefined;
  if (!place) await serverCertificate(instance);
  const gateways = new Set([await gatewayIdentity(instance)]);
  const roots = new Set([await rootIdentity(instance)]);
  const workers = await Promise.all(workerIds.map((id) => workerIdentity(instance, id)));
  const nodes = place ? [memberOfNode(place)] : [];
  for (const member of members) {
    if (member.role === "gateway") (member.root ? roots : gateways).add(member.nkey);
    else if (member.role === "worker" && !workerIds.includes(member.id)) workers.push(member);
    else if (member.role === "nats" && member.id !== place?.node.id) nodes.push(member);
  }
  return configuration({
    ...{ store, listen: withPort(host, port), accounts: accountsOf({ gateways: [...gateways], roots: [...roots], workers, nodes }), tls },
    ...{ syncAlways: (await natsVersion()).syncsAlways, bytesMax: storeBytesMax(config), ...(cluster ? { cluster } : {}) },
  });
}

function memberOfNode({ node }: Place): NodeIdentity {
  const [nkey = "", systemNkey = ""] = node.seeds.map(publicNkey);
  return { nkey, systemNkey };
}

const isNode = (place: Place | undefined): boolean => place?.mode === "clustered";

/** Not secret, so that the server reads one that has changed when it is told to. */
const certificateOf = (instance: Instance, place: Place | undefined): string => {
  const { certificate, nodeCertificate } = secretsOf(instance);
  return isNode(place) ? nodeCertificate : certificate;
};

/** The file with the key of a server. */
export const serverKeyOf = (instance: Instance, place: Place | undefined): string => {
  const { serverKey, nodeKey } = secretsOf(instance);
  return isNode(place) ? nodeKey : serverKey;
};

/** Where the server finds it. */
const keyForServer = (instance: Instance, place: Place | undefined): string => {
  const file = serverKeyOf(instance, place);
  return instance.starter === "systemd" ? credentialOf("sandgate-nats.service", basename(file)) : file;
};

/** What a server of a cluster has in addition. Nodes talk only to those whose keys are in the list of machines. */
function clusterOf(instance: Instance, { node, nodes }: Place, tls: object): object {
  const { config } = instance;
  const own = nodes.find(({ id }) => id === node.id)?.place;
  const route = ({ host, clusterPort }: { host: string; clusterPort: number }): string => `nats://${withPort(host, clusterPort)}`;
  return {
    server_name: node.id,
    ...(own ? { client_advertise: withPort(own.host, own.port) } : {}),
    // A node that was cut off is known as such soon, and so is a connection that has not noticed.
    ...{ ping_interval: "5s", ping_max: 2 },
    cluster: {
      name: clusterName,
      listen: withPort(config.natsHost, config.natsClusterPort),
      ...(own ? { advertise: withPort(own.host, own.clusterPort) } : {}),
      routes: nodes.map(({ place }) => route(place)),
      tls: {
        ...tls,
        ca_file: secretsOf(instance).certificate,
        verify: true,
        pinned_certs: nodes.map(({ place }) => place.fingerprint),
      },
    },
  };
}

/**
 * The size of all buckets, the audit record and the object store when full, doubled: a stream that several gateways create at the same time
 * is counted once for each until all but one have found that it exists.
 */
const storeBytesMax = ({ snapshotArchiveBytesMax }: Config): number =>
  2 * Object.values(bucketBytesMax).reduce((sum, bytes) => sum + bytes, auditBytesMax + snapshotArchiveBytesMax);

interface ServerSettings {
  readonly store: string;
  readonly listen: string;
  readonly accounts: object;
  readonly tls: object;
  readonly syncAlways: boolean;
  readonly bytesMax: number;
  readonly cluster?: object;
}

function configuration({ store, listen, accounts, tls, syncAlways, bytesMax, cluster }: ServerSettings): string {
  // JSON is a subset of the server's configuration language.
  const settings = {
    listen,
    accounts,
    system_account: systemAccount,
    tls,
    ...cluster,
    max_payload: maxPayloadBytes,
    // The server reserves the maximum size of the buckets, and would refuse one that is larger than the free disk space.
    jetstream: { store_dir: store, max_memory_store: 256 * 1024 * 1024, max_file_store: bytesMax, ...(syncAlways ? { sync_interval: "always" } : {}) },
  };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}
