/**
 * `sandgate-setup.service`: prepares the machine at every boot and before each start of the other services, and writes what they
 * are started with. With `--undo`, it releases what it took, and with `--certificate`, it hands on a new one.
 */
import { ConfigError, forgetSecrets, loadConfig, settings } from "../../shared/config.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import { pathsOf, runsHere } from "../base/instance.ts";
import { searchPath } from "../base/search-path.mjs";
import { Terminal } from "../base/terminal.ts";
import { giveNats } from "../cluster/apply.ts";
import { argumentsOf } from "../helper/arguments.ts";
import { memoryKeyOf } from "../helper/memory/key.ts";
import { imagePlaceOf } from "../helper/memory/room.ts";
import { findAccounts } from "../setup/account.ts";
import { createAdministrator } from "../setup/administrator.ts";
import { removeControlGroups } from "../setup/control-groups.ts";
import { defaultImageId } from "../setup/default-image.ts";
import { keepStartOut, makeSupervisorFolder, prepareAlone } from "../supervisor/alone.ts";
import { workerIdOf } from "../supervisor/bus-identities.ts";
import { apiKeyOf } from "../supervisor/credentials.ts";
import { configureNats } from "../supervisor/nats.ts";
import { natsCheck, natsVersion } from "../supervisor/nats-version.ts";
import { gatewaySpec, type Wiring, workerSpec } from "../supervisor/node-parts.ts";
import { unmount } from "../volume/unmount.ts";
import { isVolume } from "../volume/volume.ts";
import { copyCertificate, forgetCertificate, giveCertificate } from "./certificate.ts";
import { give, giveData, giveHelper, helperSocket } from "./given.ts";
import { settingsOf } from "./places.ts";
import { protectHost } from "./protection.ts";
import { takeSecrets } from "./secrets.ts";

/** EX_CONFIG of sysexits.h: another start would fail in the same way. */
const exitConfig = 78;

async function provide(terminal: Terminal): Promise<void> {
  const config = loadConfig();
  const defaults = loadConfig({});
  for (const key of ["user", "dataDir"] as const) {
    if (config[key] !== defaults[key]) throw new ConfigError(`${settings[key].name} cannot be set for services: their units name ${defaults[key]}`);
  }
  forgetSecrets();
  const folder = pathsOf(config).supervisor;
  makeSupervisorFolder(folder);
  // Held by nobody while the services run; npm start looks for them by what is written here.
  const lock = await keepStartOut(folder);
  const { instance, volume, execServer } = await prepareAlone(folder, config, terminal, new AbortController().signal, "systemd");
  takeSecrets(instance.paths.secrets);
  const [hasWorker, hasGateway, hasNats] = (["worker", "gateway", "nats"] as const).map((part) => runsHere(config, part));
  const workerId = hasWorker ? await workerIdOf(instance) : "";
  const nats = hasNats ? await configureNats(instance, hasWorker ? [workerId] : []) : undefined;
  const wiring: Wiring = {
    gatewayBus: nats?.gateway ?? {},
    workerBus: nats?.worker(workerId) ?? {},
    workerId,
    apiKey: hasGateway || hasNats ? await apiKeyOf(instance) : "",
    port: config.port,
    volume,
    defaultImageId: hasWorker ? ((await defaultImageId(instance)) ?? "") : "",
    execServer: execServer ?? "",
    helper: helperSocket,
    outlivesWorker: true,
  };
  if (hasWorker) await protectHost(instance.account, config);
  if (hasWorker) await give("worker", (await workerSpec(instance, wiring)).env);
  if (hasGateway) await give("gateway", { ...(await gatewaySpec(instance, wiring)).env, ...(await giveCertificate(config, instance.accounts.gateway)) });
  const { value, note } = hasNats ? natsCheck(await natsVersion()) : {};
  if (note) terminal.line(`nats-server ${value}: ${note}`);
  if (nats?.runs) await giveNats(instance);
  // Other machines get it with the word by which they join this one.
  if (hasNats) await memoryKeyOf(instance);
  if (isVolume(volume)) await giveHelper(argumentsOf({ volume, images: imagePlaceOf(instance), worker: { pid: 0, account: instance.account } }));
  await giveData(instance.paths.data);
  lock.release();
}

/** Sandboxes that still run keep the volume and their groups; the next set-up uses them as they are. */
async function undo(terminal: Terminal): Promise<void> {
  const config = loadConfig();
  const { worker } = await findAccounts(config);
  await forgetCertificate();
  await removeControlGroups(worker, createAdministrator(terminal, new AbortController().signal));
  const { volume } = pathsOf(config);
  if (!config.volume && !(await unmount(volume))) terminal.line(`${volume} is in use and stays mounted.`);
}

/** After a change of its files. */
async function renewCertificate(): Promise<void> {
  const config = loadConfig(await settingsOf());
  await copyCertificate(config, (await findAccounts(config)).gateway);
}

process.env.PATH = searchPath;
const terminal = new Terminal(process.stdout);
try {
  const work = { "--undo": undo, "--certificate": renewCertificate }[process.argv[2] ?? ""] ?? provide;
  await work(terminal);
  process.exit(0);
} catch (error) {
  terminal.bad(error instanceof StartFailure || error instanceof ConfigError ? messageOf(error) : String(error instanceof Error ? error.stack : error));
  process.exit(error instanceof ConfigError ? exitConfig : 1);
}
