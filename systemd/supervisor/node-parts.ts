/** The commands and environments of the worker and the gateway. */
import { join } from "node:path";
import { builtName, type Program } from "../../shared/programs.mjs";
import { accountEnvironment, asAccount, givenSettings, inPodmanNamespace, partEnvironment } from "../base/as-account.ts";
import type { Instance } from "../base/instance.ts";
import { serveWorker } from "../helper/connect.ts";
import { imagePlaceOf } from "../helper/memory/room.ts";
import { isVolume, type NoVolume, type Volume } from "../volume/volume.ts";
import { secretFiles } from "./credentials.ts";
import { parsePinoLine } from "./log-line.ts";
import type { BusSettings } from "./nats.ts";
import { type PartSpec, servedFd } from "./part.ts";

/** The header limit, which uWebSockets.js reads from the environment: fits a percent-encoded path of 4096 characters in the query. */
export const headerBytesMax = String(24 * 1024);

/**
 * The initial size of the young generation in MiB; V8 grows it under load. Each chunk of a stream takes little heap but much
 * memory outside it, so with a smaller young generation chunks are promoted, and only collections of the whole heap free
 * them. A larger one makes no stream cheaper, and an idle part would keep the memory.
 */
const youngGeneration = "--min-semi-space-size=4";

/** For `settleMemory`. */
const collectable = "--expose-gc";

/** What the parts are told in addition to the user's settings. */
export interface Wiring {
  /** How the parts connect to an owned bus; empty if the user's settings say how. */
  readonly gatewayBus: BusSettings;
  readonly workerBus: BusSettings;
  readonly workerId: string;
  readonly apiKey: string;
  readonly port: number;
  readonly volume: Volume | NoVolume;
  readonly defaultImageId: string;
  /** The path of the program that starts commands in sandboxes, or nothing. */
  readonly execServer: string;
  /** The path of the helper's socket; a connection of its own when absent. */
  readonly helper?: string;
  /** Whether sandboxes go on running when their worker stops. */
  readonly outlivesWorker?: boolean;
}

/** The worker, inside Podman's namespace. Under `npm start`, which nothing outlives, it also stops its sandboxes when it stops. */
export async function workerSpec(instance: Instance, wiring: Wiring): Promise<PartSpec> {
  const { workerBus, workerId, volume, defaultImageId, execServer, helper, outlivesWorker = false } = wiring;
  const command = inPodmanNamespace(instance, nodeCommand(instance, "worker/main.ts"));
  const spec = partSpec(instance, "worker", command, {
    ...accountEnvironment(instance),
    ...(await secretFiles(instance, "worker", { ...instance.config, bootstrapApiKey: "" })),
    ...workerBus,
    SANDGATE_WORKER_ID: workerId,
    SANDGATE_DEFAULT_IMAGE_ID: defaultImageId,
    SANDGATE_EXEC_SERVER: execServer,
    SANDGATE_STOP_SANDBOXES: String(!outlivesWorker),
    ...volumeSettings(volume, helper),
  });
  return isVolume(volume)
    ? {
        ...spec,
        serve: (connection, pid) =>
          serveWorker(connection, { volume, images: imagePlaceOf(instance), worker: { pid, account: instance.account } }, instance.paths),
      }
    : spec;
}

/** How a worker finds the volume and the helper that looks after it; without one, neither. @param helper a descriptor's number or the path of a socket */
export function volumeSettings(volume: Volume | NoVolume, helper = String(servedFd)): Record<string, string> {
  return isVolume(volume) ? { SANDGATE_VOLUME_DIR: volume.dir, SANDGATE_HELPER: helper } : { SANDGATE_VOLUME_DIR: "", SANDGATE_HELPER: "" };
}

/** The gateway. It gets the port number that was found, so that the port stays the same when the gateway restarts. */
export async function gatewaySpec(instance: Instance, { gatewayBus, apiKey, port }: Wiring): Promise<PartSpec> {
  const command = asAccount(instance.accounts.gateway, nodeCommand(instance, "gateway/main.ts"), port < 1024 ? ["net_bind_service"] : []);
  return partSpec(instance, "gateway", command, {
    ...partEnvironment(instance, "gateway"),
    ...(await secretFiles(instance, "gateway", { ...instance.config, bootstrapApiKey: apiKey })),
    ...gatewayBus,
    SANDGATE_PORT: String(port),
    UWS_HTTP_MAX_HEADERS_SIZE: headerBytesMax,
  });
}

/** The command that runs a program from `build/`. */
export function nodeCommand({ paths }: Instance, source: Program): string[] {
  return [join(paths.app, "node_modules/.bin/node"), youngGeneration, collectable, join(paths.app, "build", builtName(source))];
}

function partSpec({ paths }: Instance, name: string, argv: readonly string[], env: Readonly<Record<string, string>>): PartSpec {
  // Always passed, because their defaults depend on the calling user.
  const places = { SANDGATE_DATA_DIR: paths.data, SANDGATE_STORAGE_DIR: paths.storage, SANDGATE_LINES_DIR: paths.lines };
  return {
    name,
    argv,
    env: { ...givenSettings(), ...env, ...places },
    cwd: paths.app,
    parse: parsePinoLine,
    logFile: join(paths.logs, `${name}.log`),
    notes: paths.supervisor,
  };
}
