/** The table of settings, by their names in the code: `dataDir` is the variable `SANDGATE_DATA_DIR`. */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import {
  choice,
  type Environment,
  file,
  flag,
  httpHeaders,
  httpUrl,
  integer,
  ipAddress,
  list,
  listOf,
  openTelemetry,
  pairs,
  ratio,
  type Setting,
  text,
} from "./setting-kinds.ts";
import { detachTimeoutMaxS, ringBytesDefault } from "./stream/session/protocol.ts";
import { hostAndPort } from "./util/host.ts";
import { localRegistry, nameOf, parseImage, parseRegistry } from "./util/image.ts";

const hosts = (about: string): Setting<readonly string[]> =>
  listOf(
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

const samplers = ["always_on", "always_off", "traceidratio"] as const;

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const TiB = 1024 * GiB;
const dataHome = (environment: Environment): string =>
  process.getuid?.() === 0 ? "/var/lib/sandgate" : join(environment.XDG_DATA_HOME ?? join(environment.HOME ?? homedir(), ".local/share"), "sandgate");

/** The settings. Sizes are in bytes (`Bytes`), times in milliseconds (`Ms`). */
export const table = {
  dataDir: text(dataHome, "The directory of everything that must survive a restart."),
  config: {
    ...text("", "A file with settings, one NAME=value in a line; sandgate.env in the data directory when empty. The environment takes precedence over it."),
    takes: "the absolute path of a file",
    parse: (value: string) => (isAbsolute(value) && !value.includes("\0") ? value : undefined),
  },
  storageDir: text("", "Podman's image and container storage; inside the data directory when empty."),
  runtimeDir: text((environment) => join(environment.XDG_RUNTIME_DIR ?? "/tmp", "sandgate"), "Short-lived files of the worker, preferably in memory."),
  volume: text(
    "",
    "A folder where the operator has mounted a btrfs file system that holds the sandboxes; none for plain folders; when empty, the start makes a volume in the data directory if it can.",
  ),
  volumeBytesMax: integer(
    1 * TiB,
    1 * GiB,
    64 * TiB,
    "Largest size of the volume in the data directory, which grows as needed while the disk below it has room.",
  ),
  volumeDir: text("", "Set by the start itself: the folder where the volume is mounted; sandboxes are in plain folders when empty."),
  helper: text(
    "",
    "Set by the start itself: how the worker reaches the privileged helper, by the number of a descriptor or the path of a socket; there is none when empty.",
  ),
  user: text(
    "sandgate",
    "The unprivileged user that runs the worker when started as root; the gateway and NATS run as the users with -gateway and -nats appended to its name.",
  ),
  role: choice("all", ["all", "nats", "gateway", "worker"] as const, "What the services of systemd run on this machine; npm start always runs everything."),
  host: text("127.0.0.1", "The address that the gateway listens on."),
  port: integer(8080, 0, 65535, "The port that the gateway listens on; 0 takes a free one."),
  tlsCertificate: file(
    "A file with the gateway's certificate and those between it and its authority, in PEM. With it the gateway speaks HTTPS. A new one is used within seconds.",
  ),
  tlsKey: file(
    "A file with the private key of that certificate, in PEM. The gateway's user must be able to read both; where systemd runs it, root alone is enough.",
  ),
  metricsHost: text("127.0.0.1", "The address of /metrics, which needs no key: make it reachable only for those who may read it."),
  metricsPort: integer(9464, 0, 65535, "The port of /metrics (Prometheus text); 0 turns it off."),
  otlpEndpoint: openTelemetry(
    "EXPORTER_OTLP_ENDPOINT",
    httpUrl("Where gateways and workers send OpenTelemetry traces: a base URL such as http://127.0.0.1:4318, to which /v1/traces is added; none when empty."),
  ),
  otlpTracesEndpoint: openTelemetry("EXPORTER_OTLP_TRACES_ENDPOINT", httpUrl("The same as a whole URL, to which nothing is added; it comes first.")),
  otlpHeaders: openTelemetry("EXPORTER_OTLP_HEADERS", httpHeaders("HTTP headers sent with the traces, such as a key.")),
  otelServiceName: openTelemetry("SERVICE_NAME", text("", "The service that the spans belong to; sandgate-gateway and sandgate-worker when empty.")),
  otelResourceAttributes: openTelemetry("RESOURCE_ATTRIBUTES", pairs("Attributes of all spans, such as deployment.environment.name=production.")),
  otelTracesSampler: openTelemetry(
    "TRACES_SAMPLER",
    choice(
      "parentbased_always_on",
      [...samplers, ...samplers.map((name) => `parentbased_${name}` as const)],
      "Which traces are recorded. With parentbased_, the caller decides where it sends a traceparent.",
    ),
  ),
  otelTracesSamplerArg: openTelemetry("TRACES_SAMPLER_ARG", ratio("Which share of the traces traceidratio records.")),
  otelSendDelayMs: openTelemetry("BSP_SCHEDULE_DELAY", integer(5_000, 1, 600_000, "How long spans are collected before they are sent together.")),
  natsUrl: text("", "An existing NATS server with JetStream; when empty, the product starts its own.", true),
  natsNkey: text("", "The seed of the nkey with which a part logs in to an existing NATS server; a worker has two, for calls and for storage.", true),
  natsCa: file("A file with the certificate that the NATS server must present, or of the authority that signed it; required for TLS."),
  natsHost: text("127.0.0.1", "The address that the product's own NATS server listens on; other machines can only join at one that they reach."),
  natsPort: integer(0, 0, 65535, "Port of the product's own NATS server; 0 takes a free one."),
  natsClusterPort: integer(4224, 1, 65535, "Port on which the product's own NATS servers talk to each other in a cluster."),
  bootstrapApiKey: text("", "API key of the first account, stored in the file api-key; generated when empty.", true),
  workerId: text("", "Name of this worker in the fleet; generated once and stored when empty."),
  logLevel: choice("info", ["trace", "debug", "info", "warn", "error"] as const, "Least severe log line that is written."),
  corsOrigins: list("Browser origins that may call the API; none when empty."),
  publicUrl: text("", "The URL at which browsers reach the gateway, such as https://sandboxes.example.com behind a proxy; with https its cookies are Secure."),
  allowedHosts: hosts(
    "Further host names accepted by the gateway besides localhost, the machine's own addresses, SANDGATE_HOST and the host of SANDGATE_PUBLIC_URL; a call with another Host gets 400. A name with a port allows only that port.",
  ),
  trustProxy: flag(false, "Take the client's address from the last X-Forwarded-For entry, as set by a proxy in front of the gateway."),
  accessLog: flag(false, "Log every call, not only those that change something."),
  auditDays: integer(90, 1, 3_650, "How many days the audit record keeps who changed accounts, keys, limits, workers and images, and who logged in."),

  signUp: flag(true, "Whether people can make accounts on the web page."),
  firstAccountOperator: flag(false, "Whether who signs up becomes an operator while nobody else has an account to log in to."),
  keysPerAccount: integer(5, 1, 1_000, "Active API keys of one account."),
  revokedKeysMs: integer(
    2_592_000_000,
    0,
    31_536_000_000,
    "How long revoked API keys stay listed and are reported as revoked, at most the last 100 of an account; then they are forgotten.",
  ),
  sessionMs: integer(604_800_000, 60_000, 2_592_000_000, "How long a browser stays logged in."),
  loginFailuresPerAccount: integer(
    10,
    1,
    10_000,
    "Wrong passwords for one account in 5 minutes from one address, or from a browser that has logged in before; more get 429. All other addresses together get ten times as many.",
  ),
  authFailuresPerAddress: integer(60, 1, 1_000_000, "Failed authentications (keys and passwords) per minute from one address on one gateway; more get 429."),
  signUpsPerAddress: integer(10, 1, 1_000_000, "Accounts created per hour from one address on one gateway; more get 429."),
  enterpriseRequests: integer(10_000_000, 1, 1_000_000_000, "Requests per minute for a key of the enterprise tier without custom limits."),
  enterpriseSandboxes: integer(10_000, 0, 1_000_000, "Sandboxes for a key of the enterprise tier without custom limits."),

  defaultImage: {
    fallback: "localhost/sandgate/default:latest",
    takes: "the name of a container image",
    about: 'The image that "default" refers to; built from Debian packages unless its name has a registry.',
    parse: imageName,
  } as Setting<string>,
  linesDir: text("", "Set by the start itself: the folder of the Unix sockets between gateways and workers of one machine; streams go over NATS when empty."),
  linesHost: ipAddress(
    "The address on which a gateway listens for workers of other machines, whose streams then go over TLS instead of NATS; when empty, the one at which its NATS server sees it, unless that is a loopback one.",
  ),
  linesPort: integer(4225, 0, 65_528, "The first of eight ports for that. Each gateway of a machine takes the first free one; with 0 it listens on none."),
  execServer: text("", "Set by the start itself: the program that starts commands in sandboxes; the OCI runtime starts them when empty."),
  defaultImageId: text("", "Set by the start itself: the id of the default image, which stays the same even if its name is given to another one."),
  localImages: listOf(
    "a comma-separated list of names such as localhost/tools:latest",
    localImageName,
    "Local images that callers may use by name besides the default one; no other name under localhost/ is accepted.",
  ),
  privateRegistries: listOf(
    "a comma-separated list of registries such as registry.lan:5000",
    parseRegistry,
    "Trusted registries, which may have private addresses; all others must be on the internet.",
  ),
  aptMirror: text("", "Debian mirror for building the default image; taken from the machine's apt sources when empty."),
  imagePull: flag(true, "Whether images that the worker lacks are pulled from their registry."),
  imagesBytesMax: integer(20 * GiB, MiB, TiB, "Disk space for images from registries; when a new one does not fit, the least recently used ones are removed."),
  imagePullTimeoutMs: integer(600_000, 1_000, 3_600_000, "Longest time for one image pull."),

  bodyBytesMax: integer(MiB, 1_024, 64 * MiB, "Largest JSON request body."),
  uploadBytesMax: integer(GiB, 1, TiB, "Largest uploaded file."),
  requestsMax: integer(4_096, 1, 1_000_000, "Calls in progress on one gateway; more get 503."),
  syncOutputBytesMax: integer(
    10 * MiB,
    1_024,
    256 * MiB,
    "Bytes kept of each output stream of a synchronous execution. What comes after them is counted, no faster than 128 MiB/s.",
  ),
  syncMemoryBytesMax: integer(512 * MiB, MiB, 64 * GiB, "Output held by one gateway for synchronous executions; more wait for room."),
  streamWindowBytes: integer(MiB / 2, MiB / 16, 16 * MiB, "Bytes in flight between worker and gateway for one stream that is read fast."),
  streamWindowsBytesMax: integer(
    64 * MiB,
    0,
    16 * GiB,
    "Bytes in flight for all streams of a gateway, or of a worker, beyond 64 KiB each: streams share it as they are read.",
  ),
  streamStallMs: integer(600_000, 1_000, 86_400_000, "A client that accepts no pending output for this long is disconnected."),
  execTimeoutMaxMs: integer(3_600_000, 1_000, 86_400_000, "Longest streaming execution."),
  executionsPerSandbox: integer(64, 1, 4_096, "Commands running at once in one sandbox; more get 429."),

  sessionsPerSandbox: integer(32, 1, 4_096, "Live sessions at once in one sandbox; more get 429."),
  sessionsPerAccount: integer(256, 1, 100_000, "Live sessions of one account at once on one worker; more get 429."),
  sessionSocketsMax: integer(4_096, 1, 1_000_000, "WebSockets of live sessions on one gateway; more get 503."),
  sessionRingBytes: integer(ringBytesDefault, MiB / 2, 64 * MiB, "How much of the latest output of a live session is kept for clients that attach again."),
  sessionDetachMaxMs: integer(detachTimeoutMaxS * 1_000, 0, detachTimeoutMaxS * 1_000, "How long a live session may outlive its last socket at most."),
  sessionIdleMs: integer(0, 0, 2_592_000_000, "A live session without input or output for this long is ended; 0: never."),

  workerGraceMs: integer(60_000, 1_000, 86_400_000, "How long a worker may be away before its sandboxes are shown as error. They come back with it."),
  sandboxesMax: integer(200, 1, 10_000, "Sandboxes on one worker; more get 503."),
  poolSize: integer(
    2,
    0,
    100,
    "Containers of the default size kept started in advance, all but one with the files of the image that was asked for last, so that a create, restore or clone takes milliseconds; 0 for no pool.",
  ),
  poolSizeMax: integer(
    64,
    0,
    1_000,
    "How far the pool grows when creates come often: as many containers as a burst of the last minutes took, of the sizes it took, and no more than the free memory allows.",
  ),
  createsAtOnce: integer(4, 1, 64, "Containers that one worker starts at the same time; it removes half as many at once."),
  sandboxPidsMax: integer(512, 16, 32_768, "Processes in one sandbox."),
  controlGroups: choice(
    "auto",
    ["auto", "none"] as const,
    "Whether Sandgate makes control groups, by which the kernel limits each sandbox, where systemd delegates none. With none, limits are watched.",
  ),
  isolation: choice(
    "standard",
    ["standard", "strong"] as const,
    "What every new sandbox gets at least. With strong, the start installs gVisor (runsc) if it is missing, and no sandbox is created where it does not work.",
  ),
  userIds: choice(
    "auto",
    ["auto", "shared"] as const,
    "Whether each sandbox gets a range of user ids of its own where that works. With shared, all have those of the worker's user.",
  ),
  sandboxNofile: integer(65_536, 64, 1_048_576, "Open files of one process in a sandbox (lowered to what the host allows)."),
  memoryFloorBytes: integer(256 * MiB, 0, TiB, "No sandbox is created while the worker has less free memory."),
  diskFloorBytes: integer(GiB, 0, TiB, "No sandbox is created and no file accepted while the worker has less free disk space."),
  logBytesPerSandbox: integer(32 * MiB, MiB, TiB, "Disk space per worker for the command log of one sandbox; the oldest entries are dropped."),
  logBytesPerAccount: integer(
    256 * MiB,
    MiB,
    TiB,
    "Disk space per worker for the command log of all sandboxes of one account; the oldest entries are dropped.",
  ),
  snapshotArchive: flag(true, "Copy snapshots to the JetStream object store, so that any worker can restore them; otherwise they are lost with their worker."),
  snapshotArchiveImages: flag(true, "Also copy the images below snapshots, once each, for workers that cannot get them from a registry."),
  snapshotArchiveBytesPerS: integer(32 * MiB, MiB / 16, 10 * GiB, "How fast one worker copies snapshots to the object store, in bytes per second."),
  snapshotArchiveBytesMax: integer(
    100 * GiB,
    MiB,
    1024 * TiB,
    "Disk space for snapshots in the object store; when it is full, later snapshots stay on their workers until there is room.",
  ),
  testFault: text("", "For tests: a file that may name the point at which the worker or its helper kills or stops itself, such as snapshot.frozen."),
  testPasswordCost: integer(
    15,
    1,
    15,
    "For tests: the cost of hashing a password, as the binary logarithm of scrypt's N. Below the default, passwords can be guessed from a stolen hash.",
  ),
  leaveMs: integer(
    0,
    0,
    600_000,
    "How long a gateway that was told to stop still takes new connections, while /readyz says 503: as long as a load balancer takes to notice that.",
  ),
  drainMs: integer(10_000, 0, 600_000, "How long running calls may continue after a stop has been requested."),
  stopSandboxes: flag(
    false,
    "Stop the processes of sandboxes when the worker stops (`npm start` does); their files are kept, and the sandboxes are started again.",
  ),
} satisfies Record<string, Setting<never> | Setting<string> | Setting<number> | Setting<boolean> | Setting<readonly string[]>>;
