/** The paths and accounts of one installation. This module only computes them; it creates nothing. */
import { createHash } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { type Config, operatorKeyFileOf, operatorSocketOf } from "../../shared/config.ts";
import { appDir } from "../../shared/programs.mjs";

/** The processes that the supervisor runs. */
export type PartName = "worker" | "gateway" | "nats";

/** Whether a part runs on this machine: in a fleet, a machine may have only one. */
export const runsHere = ({ role, natsUrl }: Pick<Config, "role" | "natsUrl">, part: PartName): boolean =>
  (role === "all" || role === part) && !(part === "nats" && natsUrl);

/** The account of each part: three users when started by root, so that taking over one part gains none of the others; else one. */
export type Accounts = Readonly<Record<PartName, Account>>;

/** An account that runs a part; never root. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** Its home as the system knows it. */
  readonly home: string;
}

/** The folders and files of an installation. */
export interface Paths {
  readonly app: string;
  readonly data: string;
  readonly storage: string;
  /** Where the volume that the set-up makes is mounted, and its file. */
  readonly volume: string;
  readonly volumeImage: string;
  /** Images of processes of sandboxes, which root alone can open. */
  readonly memory: string;
  /** The key of the installation with which these are sealed; root alone reads it. */
  readonly memoryKey: string;
  /** Where Podman unpacks pulled images; on the same disk as the storage. */
  readonly imageTemporary: string;
  readonly supervisor: string;
  readonly logs: string;
  /** Secrets of the parts. Each file is readable by one part. */
  readonly secrets: string;
  readonly gateway: string;
  readonly nats: string;
  /** Sockets of gateways for the workers of this machine: the worker's account may enter, the gateway's alone may make any. */
  readonly lines: string;
  readonly temporary: string;
  readonly podman: string;
  readonly storageConf: string;
  readonly containersConf: string;
  /** Id and name of the default image. */
  readonly defaultImage: string;
  readonly natsConf: string;
  /** Workers and gateways of other machines on the owned server: a list of ids with their public keys. */
  readonly natsMembers: string;
  /** That list as earlier versions had it, of workers only. */
  readonly formerNatsMembers: string;
  /** Makes this machine's NATS server a node of a cluster; see `systemd/cluster/`. */
  readonly natsCluster: string;
  /** The store of the only server of an installation, until a cluster has all of it. */
  readonly formerNats: string;
  /** Where the parts on this machine reach a NATS server of the cluster. */
  readonly natsUrls: string;
  readonly apiKey: string;
}

/**
 * Who starts the parts of an installation. The supervisor of `npm start` gives each part files that its account can read;
 * systemd reads files of root's and gives each unit its own as credentials.
 */
export type Starter = "supervisor" | "systemd";

/** One installation of the product on this machine. */
export interface Instance {
  readonly config: Config;
  readonly starter: Starter;
  /** The worker's account, which owns the storage and runs Podman. */
  readonly account: Account;
  readonly accounts: Accounts;
  readonly paths: Paths;
  /** HOME of the worker: the user's own, or a folder of the data directory for the service account. */
  readonly home: string;
  /**
   * XDG_RUNTIME_DIR of the worker, one for each storage directory. Podman keeps its namespace, locks and container states
   * there, so this separates installations from each other and from the account's own use of Podman.
   */
  readonly runtimeDir: string;
}

/** The paths that follow from the settings. Relative ones are relative to the folder of package.json. */
export function pathsOf(config: Config): Paths {
  const data = resolve(appDir, config.dataDir);
  const podman = join(data, "podman");
  const storage = resolve(appDir, config.storageDir);
  return {
    app: appDir,
    data,
    podman,
    storage,
    volume: join(data, "volume"),
    volumeImage: join(data, "volume.img"),
    memory: join(data, "memory"),
    memoryKey: join(data, "supervisor", "memory-key"),
    imageTemporary: join(storage, "tmp"),
    supervisor: join(data, "supervisor"),
    logs: join(data, "logs"),
    secrets: join(data, "secrets"),
    gateway: dirname(operatorSocketOf(data)),
    nats: join(data, "nats"),
    lines: join(data, "lines"),
    temporary: join(data, "tmp"),
    storageConf: join(podman, "storage.conf"),
    containersConf: join(podman, "containers.conf"),
    defaultImage: join(podman, "default-image"),
    natsConf: join(data, "nats.conf"),
    natsMembers: join(data, "nats-members.json"),
    formerNatsMembers: join(data, "nats-workers.json"),
    natsCluster: join(data, "supervisor", "nats-cluster.json"),
    formerNats: join(data, "nats-alone"),
    natsUrls: join(data, "secrets", "nats-urls"),
    apiKey: operatorKeyFileOf(data),
  };
}

/** The installation with settings `config`, run by `accounts`. */
export function instanceOf(config: Config, accounts: Accounts, starter: Starter = "supervisor"): Instance {
  const account = accounts.worker;
  const paths = pathsOf(config);
  // Short, because the path of a Unix socket below it contains a 64-character container id and is limited to 107 bytes.
  const id = createHash("sha256").update(paths.storage).digest("hex").slice(0, 6);
  const home = process.getuid?.() === account.uid ? account.home : join(paths.data, "home");
  return { config, starter, account, accounts, paths, home, runtimeDir: join(runtimeBase(account), `sg-${id}`) };
}

/** The runtime directory that the login manager makes for an account. */
export function runtimeBase(account: Account): string {
  return `/run/user/${account.uid}`;
}

/** The socket of the account's session bus, over which systemd gives cgroups to its containers. */
export function sessionBusOf(account: Account): string {
  return join(runtimeBase(account), "bus");
}
