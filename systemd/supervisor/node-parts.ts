/** How the worker and the gateway are run. */
import { join } from "node:path";
import { builtName, type Program } from "../../shared/programs.mjs";
import { accountEnvironment, asAccount, givenSettings, inPodmanNamespace, partEnvironment } from "../base/as-account.ts";
import type { Instance } from "../base/instance.ts";
import { secretFiles } from "./credentials.ts";
import { parsePinoLine } from "./log-line.ts";
import type { BusSettings } from "./nats.ts";
import type { PartSpec } from "./part.ts";

/** uWebSockets.js takes this from its environment: room for a path of 4096 characters, percent-encoded, in the query. */
export const headerBytesMax = String(24 * 1024);

/**
 * Room for short-lived objects in MiB: all that V8 would come to by itself, from the start on. Each piece of a stream is
 * little in the heap and much outside of it, so in a small young generation pieces grow old, and only collections of the
 * whole heap free them: half of a part's CPU while it streams.
 */
const youngGeneration = "--min-semi-space-size=16";

/** What the parts are told beside the settings that the person gave. */
export interface Wiring {
  /** How the parts get onto an owned bus; empty where the person's settings say it. */
  readonly gatewayBus: BusSettings;
  readonly workerBus: BusSettings;
  readonly workerId: string;
  readonly apiKey: string;
  readonly port: number;
  readonly defaultImageId: string;
}

/** The worker, inside Podman's namespace. It stops its sandboxes when it stops, because here nothing outlives `npm start`. */
export async function workerSpec(instance: Instance, { workerBus, workerId, defaultImageId }: Wiring): Promise<PartSpec> {
  const command = inPodmanNamespace(instance, nodeCommand(instance, "worker/main.ts"));
  return partSpec(instance, "worker", command, {
    ...accountEnvironment(instance),
    ...(await secretFiles(instance, "worker", { ...instance.config, bootstrapApiKey: "" })),
    ...workerBus,
    SANDGATE_WORKER_ID: workerId,
    SANDGATE_DEFAULT_IMAGE_ID: defaultImageId,
    SANDGATE_STOP_SANDBOXES: "true",
  });
}

/** The gateway. The port is passed as the one that was found, so that it stays the same when the gateway starts again. */
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

/** The command that runs a program as it was built. */
export function nodeCommand({ paths }: Instance, source: Program): string[] {
  return [join(paths.app, "node_modules/.bin/node"), youngGeneration, join(paths.app, "build", builtName(source))];
}

function partSpec({ paths }: Instance, name: string, argv: readonly string[], env: Readonly<Record<string, string>>): PartSpec {
  // Passed whole, because the defaults of these depend on the user that asks.
  const places = { SANDGATE_DATA_DIR: paths.data, SANDGATE_STORAGE_DIR: paths.storage };
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
