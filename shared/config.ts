/**
 * The settings of the product: one table, read from the environment once, checked and frozen.
 * No other file reads `process.env` (the start-up scripts in `systemd/` only pass it on as a whole).
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { detachTimeoutMaxS, ringBytesDefault } from "./stream/session/protocol.ts";
import { hostAndPort } from "./util/host.ts";
import { localRegistry, nameOf, parseImage, parseRegistry } from "./util/image.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface Setting<T> {
  readonly name: string;
  readonly takes: string;
  readonly about: string;
  readonly fallback: T | ((environment: Environment) => T);
  /** A credential: it can also be read from a file, whose path is in the variable of the same name with the suffix `_FILE`. */
  readonly secret?: true;
  parse(text: string): T | undefined;
}

const text = (name: string, fallback: Setting<string>["fallback"], about: string, secret?: true): Setting<string> => ({
  name,
  fallback,
  about,
  takes: "text",
  ...(secret ? { secret } : {}),
  parse: (value) => (value.includes("\0") ? undefined : value),
});

const integer = (name: string, fallback: number, min: number, max: number, about: string): Setting<number> => ({
  name,
  fallback,
  about,
  takes: `a whole number from ${min} to ${max}`,
  parse: (value) => {
    const number = Number(value);
    return /^\d+$/.test(value) && number >= min && number <= max ? number : undefined;
  },
});

const flag = (name: string, fallback: boolean, about: string): Setting<boolean> => ({
  name,
  fallback,
  about,
  takes: "true or false",
  parse: (value) => ({ true: true, "1": true, false: false, "0": false })[value.toLowerCase()],
});

const choice = <T extends string>(name: string, fallback: T, options: readonly T[], about: string): Setting<T> => ({
  name,
  fallback,
  about,
  takes: options.join(", "),
  parse: (value) => options.find((option) => option === value),
});

const list = (name: string, about: string): Setting<readonly string[]> => listOf(name, "a comma-separated list", (item) => item, about);

/** A list whose items are checked and normalized; one invalid item makes the whole list invalid. */
const listOf = (name: string, takes: string, parseItem: (item: string) => string | undefined, about: string): Setting<readonly string[]> => ({
  name,
  fallback: [],
  about,
  takes,
  parse: (value) => {
    const items = value.split(",").map((item) => item.trim());
    const parsed = items.filter(Boolean).map(parseItem);
    return parsed.includes(undefined) ? undefined : (parsed as string[]);
  },
});

const hosts = (name: string, about: string): Setting<readonly string[]> =>
  listOf(
    name,
    "a comma-separated list of host names or addresses, each with a port or without, such as sandboxes.example.com",
    (item) => (hostAndPort(item) ? item : undefined),
    about,
  );

/** The full name of an image; undefined if the text is not an image name. */
const imageName = (text: string): string | undefined => {
  try {
    return nameOf(parseImage(text));
  } catch {
    return undefined;
  }
};

const localImageName = (text: string): string | undefined => {
  const name = imageName(text);
  return name?.startsWith(`${localRegistry}/`) ? name : undefined;
};

const MiB = 1024 * 1024;
const dataHome = (environment: Environment): string =>
  process.getuid?.() === 0 ? "/var/lib/sandgate" : join(environment.XDG_DATA_HOME ?? join(environment.HOME ?? homedir(), ".local/share"), "sandgate");

/** The settings, by the names used in the code. Sizes are in bytes (`Bytes`), times in milliseconds (`Ms`). */
export const settings = {
  dataDir: text("SANDGATE_DATA_DIR", dataHome, "The directory of everything that must survive a restart."),
  storageDir: text("SANDGATE_STORAGE_DIR", "", "Podman's image and container storage; inside the data directory when empty."),
  runtimeDir: text(
    "SANDGATE_RUNTIME_DIR",
    (environment) => join(environment.XDG_RUNTIME_DIR ?? "/tmp", "sandgate"),
    "Short-lived files of the worker, preferably in memory.",
  ),
  volume: text(
    "SANDGATE_VOLUME",
    "",
    "A folder where the operator has mounted a btrfs file system that holds the sandboxes; none for plain folders; when empty, the start makes a volume in the data directory if it can.",
  ),
  volumeBytesMax: integer(
    "SANDGATE_VOLUME_BYTES_MAX",
    1024 * 1024 * MiB,
    1024 * MiB,
    64 * 1024 * 1024 * MiB,
    "Largest size of the volume in the data directory, which grows as needed while the disk below it has room.",
  ),
  volumeDir: text("SANDGATE_VOLUME_DIR", "", "Set by the start itself: the folder where the volume is mounted; sandboxes are in plain folders when empty."),
  helperFd: integer(
    "SANDGATE_HELPER_FD",
    0,
    0,
    1_023,
    "Set by the start itself: the worker's descriptor of its connection to the privileged helper; 0: there is none.",
  ),
  user: text(
    "SANDGATE_USER",
    "sandgate",
    "The unprivileged user that runs the worker when started as root; the gateway and NATS run as the users with -gateway and -nats appended to its name.",
  ),
  host: text("SANDGATE_HOST", "127.0.0.1", "The address that the gateway listens on."),
  port: integer("SANDGATE_PORT", 8080, 0, 65535, "The port that the gateway listens on; 0 takes a free one."),
  metricsHost: text("SANDGATE_METRICS_HOST", "127.0.0.1", "The address of /metrics, which needs no key: make it reachable only for those who may read it."),
  metricsPort: integer("SANDGATE_METRICS_PORT", 9464, 0, 65535, "The port of /metrics (Prometheus text); 0 turns it off."),
  natsUrl: text("SANDGATE_NATS_URL", "", "An existing NATS server with JetStream; when empty, the product starts its own.", true),
  natsNkey: text(
    "SANDGATE_NATS_NKEY",
    "",
    "The seed of the nkey with which a part logs in to an existing NATS server; a worker has two, for calls and for storage.",
    true,
  ),
  natsCa: text("SANDGATE_NATS_CA", "", "A file with the certificate that the NATS server must present, or of the authority that signed it; required for TLS."),
  natsPort: integer("SANDGATE_NATS_PORT", 0, 0, 65535, "Loopback port of the product's own NATS server; 0 takes a free one."),
  bootstrapApiKey: text("SANDGATE_BOOTSTRAP_API_KEY", "", "API key of the first account, stored in the file api-key; generated when empty.", true),
  workerId: text("SANDGATE_WORKER_ID", "", "Name of this worker in the fleet; generated once and stored when empty."),
  logLevel: choice("SANDGATE_LOG_LEVEL", "info", ["trace", "debug", "info", "warn", "error"] as const, "Least severe log line that is written."),
  corsOrigins: list("SANDGATE_CORS_ORIGINS", "Browser origins that may call the API; none when empty."),
  publicUrl: text(
    "SANDGATE_PUBLIC_URL",
    "",
    "The URL at which browsers reach the gateway, such as https://sandboxes.example.com behind a proxy; with https its cookies are Secure.",
  ),
  allowedHosts: hosts(
    "SANDGATE_ALLOWED_HOSTS",
    "Further host names accepted by the gateway besides localhost, the machine's own addresses, SANDGATE_HOST and the host of SANDGATE_PUBLIC_URL; a call with another Host gets 400. A name with a port allows only that port.",
  ),
  trustProxy: flag("SANDGATE_TRUST_PROXY", false, "Take the client's address from the last X-Forwarded-For entry, as set by a proxy in front of the gateway."),
  accessLog: flag("SANDGATE_ACCESS_LOG", false, "Log every call, not only those that change something."),

  signUp: flag("SANDGATE_SIGN_UP", true, "Whether people can make accounts on the web page."),
  firstAccountOperator: flag("SANDGATE_FIRST_ACCOUNT_OPERATOR", false, "Whether the first account that signs up becomes an operator."),
  keysPerAccount: integer("SANDGATE_KEYS_PER_ACCOUNT", 5, 1, 1_000, "Active API keys of one account."),
  revokedKeysMs: integer(
    "SANDGATE_REVOKED_KEYS_MS",
    2_592_000_000,
    0,
    31_536_000_000,
    "How long revoked API keys stay listed and are reported as revoked, at most the last 100 of an account; then they are forgotten.",
  ),
  sessionMs: integer("SANDGATE_SESSION_MS", 604_800_000, 60_000, 2_592_000_000, "How long a browser stays logged in."),
  loginFailuresPerAccount: integer(
    "SANDGATE_LOGIN_FAILURES_PER_ACCOUNT",
    10,
    1,
    10_000,
    "Wrong passwords for one account in 5 minutes from one address, or from a browser that has logged in before; more get 429. All other addresses together get ten times as many.",
  ),
  authFailuresPerAddress: integer(
    "SANDGATE_AUTH_FAILURES_PER_ADDRESS",
    60,
    1,
    1_000_000,
    "Failed authentications (keys and passwords) per minute from one address on one gateway; more get 429.",
  ),
  signUpsPerAddress: integer("SANDGATE_SIGN_UPS_PER_ADDRESS", 10, 1, 1_000_000, "Accounts created per hour from one address on one gateway; more get 429."),
  enterpriseRequests: integer(
    "SANDGATE_ENTERPRISE_REQUESTS",
    10_000_000,
    1,
    1_000_000_000,
    "Requests per minute for a key of the enterprise tier without custom limits.",
  ),
  enterpriseSandboxes: integer("SANDGATE_ENTERPRISE_SANDBOXES", 10_000, 0, 1_000_000, "Sandboxes for a key of the enterprise tier without custom limits."),

  defaultImage: {
    name: "SANDGATE_DEFAULT_IMAGE",
    fallback: "localhost/sandgate/default:latest",
    takes: "the name of a container image",
    about: 'The image that "default" refers to; built from Debian packages unless its name has a registry.',
    parse: imageName,
  } as Setting<string>,
  defaultImageId: text(
    "SANDGATE_DEFAULT_IMAGE_ID",
    "",
    "Set by the start itself: the id of the default image, which stays the same even if its name is given to another one.",
  ),
  localImages: listOf(
    "SANDGATE_LOCAL_IMAGES",
    "a comma-separated list of names such as localhost/tools:latest",
    localImageName,
    "Local images that callers may use by name besides the default one; no other name under localhost/ is accepted.",
  ),
  privateRegistries: listOf(
    "SANDGATE_PRIVATE_REGISTRIES",
    "a comma-separated list of registries such as registry.lan:5000",
    parseRegistry,
    "Trusted registries, which may have private addresses; all others must be on the internet.",
  ),
  aptMirror: text("SANDGATE_APT_MIRROR", "", "Debian mirror for building the default image; taken from the machine's apt sources when empty."),
  imagePull: flag("SANDGATE_IMAGE_PULL", true, "Whether images that the worker lacks are pulled from their registry."),
  imagesBytesMax: integer(
    "SANDGATE_IMAGES_BYTES_MAX",
    20 * 1024 * MiB,
    1 * MiB,
    1024 * 1024 * MiB,
    "Disk space for images from registries; when a new one does not fit, the least recently used ones are removed.",
  ),
  imagePullTimeoutMs: integer("SANDGATE_IMAGE_PULL_TIMEOUT_MS", 600_000, 1_000, 3_600_000, "Longest time for one image pull."),

  bodyBytesMax: integer("SANDGATE_BODY_BYTES_MAX", 1 * MiB, 1_024, 64 * MiB, "Largest JSON request body."),
  uploadBytesMax: integer("SANDGATE_UPLOAD_BYTES_MAX", 1024 * MiB, 1, 1024 * 1024 * MiB, "Largest uploaded file."),
  requestsMax: integer("SANDGATE_REQUESTS_MAX", 4_096, 1, 1_000_000, "Calls in progress on one gateway; more get 503."),
  syncOutputBytesMax: integer("SANDGATE_SYNC_OUTPUT_BYTES_MAX", 10 * MiB, 1_024, 256 * MiB, "Bytes kept of each output stream of a synchronous execution."),
  syncMemoryBytesMax: integer(
    "SANDGATE_SYNC_MEMORY_BYTES_MAX",
    512 * MiB,
    1 * MiB,
    65_536 * MiB,
    "Output held by one gateway for synchronous executions; more wait for room.",
  ),
  streamWindowBytes: integer("SANDGATE_STREAM_WINDOW_BYTES", 512 * 1024, 64 * 1024, 16 * MiB, "Bytes in flight between worker and gateway for one stream."),
  streamStallMs: integer("SANDGATE_STREAM_STALL_MS", 600_000, 1_000, 86_400_000, "A client that accepts no pending output for this long is disconnected."),
  execTimeoutMaxMs: integer("SANDGATE_EXEC_TIMEOUT_MAX_MS", 3_600_000, 1_000, 86_400_000, "Longest streaming execution."),
  executionsPerSandbox: integer("SANDGATE_EXECUTIONS_PER_SANDBOX", 64, 1, 4_096, "Commands running at once in one sandbox; more get 429."),

  sessionsPerSandbox: integer("SANDGATE_SESSIONS_PER_SANDBOX", 32, 1, 4_096, "Live sessions at once in one sandbox; more get 429."),
  sessionsPerAccount: integer("SANDGATE_SESSIONS_PER_ACCOUNT", 256, 1, 100_000, "Live sessions of one account at once on one worker; more get 429."),
  sessionSocketsMax: integer("SANDGATE_SESSION_SOCKETS_MAX", 4_096, 1, 1_000_000, "WebSockets of live sessions on one gateway; more get 503."),
  sessionRingBytes: integer(
    "SANDGATE_SESSION_RING_BYTES",
    ringBytesDefault,
    512 * 1024,
    64 * MiB,
    "How much of the latest output of a live session is kept for clients that attach again.",
  ),
  sessionDetachMaxMs: integer(
    "SANDGATE_SESSION_DETACH_MAX_MS",
    detachTimeoutMaxS * 1_000,
    0,
    detachTimeoutMaxS * 1_000,
    "How long a live session may outlive its last socket at most.",
  ),
  sessionIdleMs: integer("SANDGATE_SESSION_IDLE_MS", 0, 0, 2_592_000_000, "A live session without input or output for this long is ended; 0: never."),

  sandboxesMax: integer("SANDGATE_SANDBOXES_MAX", 200, 1, 10_000, "Sandboxes on one worker; more get 503."),
  poolSize: integer("SANDGATE_POOL_SIZE", 2, 0, 100, "Containers of the default image and size kept started in advance, so that a create takes milliseconds."),
  createsAtOnce: integer("SANDGATE_CREATES_AT_ONCE", 4, 1, 64, "Containers that one worker starts or removes at the same time."),
  sandboxPidsMax: integer("SANDGATE_SANDBOX_PIDS_MAX", 512, 16, 32_768, "Processes in one sandbox."),
  controlGroups: choice(
    "SANDGATE_CONTROL_GROUPS",
    "auto",
    ["auto", "none"] as const,
    "Whether Sandgate makes control groups, by which the kernel limits each sandbox, where systemd delegates none. With none, limits are watched.",
  ),
  sandboxNofile: integer("SANDGATE_SANDBOX_NOFILE", 65_536, 64, 1_048_576, "Open files of one process in a sandbox (lowered to what the host allows)."),
  memoryFloorBytes: integer("SANDGATE_MEMORY_FLOOR_BYTES", 256 * MiB, 0, 1024 * 1024 * MiB, "No sandbox is created while the worker has less free memory."),
  diskFloorBytes: integer(
    "SANDGATE_DISK_FLOOR_BYTES",
    1024 * MiB,
    0,
    1024 * 1024 * MiB,
    "No sandbox is created and no file accepted while the worker has less free disk space.",
  ),
  logBytesPerSandbox: integer(
    "SANDGATE_LOG_BYTES_PER_SANDBOX",
    32 * MiB,
    1 * MiB,
    1024 * 1024 * MiB,
    "Disk space per worker for the command log of one sandbox; the oldest entries are dropped.",
  ),
  logBytesPerAccount: integer(
    "SANDGATE_LOG_BYTES_PER_ACCOUNT",
    256 * MiB,
    1 * MiB,
    1024 * 1024 * MiB,
    "Disk space per worker for the command log of all sandboxes of one account; the oldest entries are dropped.",
  ),
  snapshotArchive: flag(
    "SANDGATE_SNAPSHOT_ARCHIVE",
    true,
    "Copy snapshots to the JetStream object store, so that any worker can restore them; otherwise they are lost with their worker.",
  ),
  snapshotArchiveImages: flag(
    "SANDGATE_SNAPSHOT_ARCHIVE_IMAGES",
    true,
    "Also copy the images below snapshots, once each, for workers that cannot get them from a registry.",
  ),
  snapshotArchiveBytesPerS: integer(
    "SANDGATE_SNAPSHOT_ARCHIVE_BYTES_PER_S",
    32 * MiB,
    64 * 1024,
    10_240 * MiB,
    "How fast one worker copies snapshots to the object store, in bytes per second.",
  ),
  snapshotArchiveBytesMax: integer(
    "SANDGATE_SNAPSHOT_ARCHIVE_BYTES_MAX",
    102_400 * MiB,
    1 * MiB,
    1024 * 1024 * 1024 * MiB,
    "Disk space for snapshots in the object store; when it is full, later snapshots stay on their workers until there is room.",
  ),
  testFault: text("SANDGATE_TEST_FAULT", "", "For tests: a file that may name the point at which the worker kills itself, such as snapshot.frozen."),
  testPasswordCost: integer(
    "SANDGATE_TEST_PASSWORD_COST",
    15,
    1,
    15,
    "For tests: the cost of hashing a password, as the binary logarithm of scrypt's N. Below the default, passwords can be guessed from a stolen hash.",
  ),
  drainMs: integer("SANDGATE_DRAIN_MS", 10_000, 0, 600_000, "How long running calls may continue after a stop has been requested."),
  stopSandboxes: flag(
    "SANDGATE_STOP_SANDBOXES",
    false,
    "Stop the processes of sandboxes when the worker stops (`npm start` does); their files are kept, and the sandboxes are started again.",
  ),
} satisfies Record<string, Setting<never> | Setting<string> | Setting<number> | Setting<boolean> | Setting<readonly string[]>>;

type ValueOf<S> = S extends { parse(text: string): infer T | undefined } ? Exclude<T, undefined> : never;

/** The checked settings of this process. */
export type Config = { readonly [K in keyof typeof settings]: ValueOf<(typeof settings)[K]> };

/** A setting that cannot be used. The message names it and the values it takes. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/** Variables for people who call the API. The product's own processes ignore them and must not see the key. */
export const clientVariables: ReadonlySet<string> = new Set(["SANDGATE_URL", "SANDGATE_API_KEY"]);

/**
 * Reads and checks all settings.
 *
 * @throws {ConfigError} when the value of a setting is invalid, or an unknown `SANDGATE_*` name is set.
 */
export function loadConfig(environment: Environment = process.env): Config {
  const known = new Set(Object.values(settings).flatMap(namesOf));
  for (const name of Object.keys(environment)) {
    if (name.startsWith("SANDGATE_") && !known.has(name) && !clientVariables.has(name)) {
      throw new ConfigError(`${name} is not a setting of Sandgate; npm start -- --help lists them`);
    }
  }
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting as Setting<unknown>, environment)]);
  const config = Object.fromEntries(entries) as Config;
  return Object.freeze({ ...config, storageDir: config.storageDir || join(config.dataDir, "containers") });
}

/**
 * Puts the worker's id into the environment of programs started from now on, so that they can be told from those of other
 * workers. They get no other setting, because some are secrets.
 */
export function markPrograms(workerId: string): void {
  for (const name of Object.values(settings).flatMap(namesOf)) delete process.env[name];
  process.env[settings.workerId.name] = workerId;
}

/** The secret settings, by their keys in the configuration. */
export const secretSettings = Object.entries(settings).flatMap(([key, setting]) =>
  "secret" in setting ? [{ key: key as keyof Config, name: setting.name }] : [],
);

/** Removes the secrets from the environment, so that programs started from now on do not inherit them. */
export function forgetSecrets(): void {
  for (const name of [...secretSettings.flatMap(({ name }) => [name, fileVariable(name)]), ...clientVariables]) delete process.env[name];
}

/** The file in which the installation with this data directory keeps the API key of its first account. */
export function operatorKeyFileOf(dataDir: string): string {
  return join(dataDir, "api-key");
}

/** The Unix socket on which the gateway with this data directory listens for the machine's operator. */
export function operatorSocketOf(dataDir: string): string {
  return join(dataDir, "gateway", "operator.sock");
}

const proxyVariables = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/** The HTTP proxies of this process, by the names of their variables. */
export function proxies(environment: Environment = process.env): ReadonlyMap<string, URL> {
  const given = proxyVariables.map((name) => [name, environment[name] ?? ""] as const);
  // A value without a scheme means HTTP.
  const urls = given.map(([name, text]) => [name, text.includes("://") ? text : `http://${text}`, text] as const);
  return new Map(urls.flatMap(([name, url, text]) => (text && URL.canParse(url) ? [[name, new URL(url)] as const] : [])));
}

/** The variables that can provide a setting. */
function namesOf({ name, secret }: Pick<Setting<unknown>, "name" | "secret">): string[] {
  return secret ? [name, fileVariable(name)] : [name];
}

/** The variable with the path of a secret's file. Files are safer: any process of the same user can read an environment. */
export const fileVariable = (name: string): string => `${name}_FILE`;

function readSecret({ name }: Setting<unknown>, environment: Environment): string | undefined {
  const variable = fileVariable(name);
  const file = environment[variable];
  if (!file) return undefined;
  if (environment[name]) throw new ConfigError(`${name} and ${variable} are both set; leave one of them out`);
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError(`${variable} cannot be read: ${(error as Error).message}`);
  }
}

function readSetting<T>(setting: Setting<T>, environment: Environment): T {
  const value = (setting.secret ? readSecret(setting, environment) : undefined) ?? environment[setting.name];
  if (value === undefined || value === "") {
    return typeof setting.fallback === "function" ? (setting.fallback as (e: Environment) => T)(environment) : setting.fallback;
  }
  const parsed = setting.parse(value.trim());
  if (parsed === undefined) throw new ConfigError(`${setting.name} must be ${setting.takes}`);
  return parsed;
}

/** The settings as rows for `--help` and the README: name, accepted values, default, meaning. */
export function describeSettings(environment: Environment = process.env): { name: string; takes: string; fallback: string; about: string }[] {
  return Object.values(settings).map((setting) => ({
    name: setting.name,
    takes: setting.takes,
    fallback: String(typeof setting.fallback === "function" ? setting.fallback(environment) : setting.fallback),
    about: "secret" in setting ? `${setting.about} ${fileVariable(setting.name)} names a file that holds it instead.` : setting.about,
  }));
}
