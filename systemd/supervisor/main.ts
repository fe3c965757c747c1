/** `npm start`: prepares the machine, then runs the parts until told to stop. */
import { type Config, ConfigError, forgetSecrets, loadConfig, settings } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import { pathsOf } from "../base/instance.ts";
import { CommandError } from "../base/run.ts";
import { searchPath } from "../base/search-path.mjs";
import { takeSettings } from "../base/settings.ts";
import { Terminal } from "../base/terminal.ts";
import { UntrustedPath } from "../base/trusted-path.mjs";
import type { Prepared } from "../setup/prepare.ts";
import { dataOfServices } from "../units/given.ts";
import { makeSupervisorFolder, prepareAlone, runLock } from "./alone.ts";
import { helpText, parseRequest, type Request } from "./arguments.ts";
import { apiKeyOf } from "./credentials.ts";
import { endLeftovers } from "./leftovers.ts";
import { holderOf, tryLock } from "./lock.ts";
import { checkPortIsFree, freePort } from "./ports.ts";
import { releaseMachine } from "./release.ts";
import { listenForStop, type StopRequest } from "./stop-request.ts";
import { Supervisor } from "./supervisor.ts";

const exitCodes = { done: 0, failed: 1, badSetting: 2, interrupted: 130 };
const leftoverPatienceMs = 15_000;

async function main(request: Request, config: Config, terminal: Terminal, stop: StopRequest): Promise<void> {
  if (config.role !== "all") throw new ConfigError(`${settings.role.name} is for services of systemd; npm start runs everything`);
  const folder = pathsOf(config).supervisor;
  makeSupervisorFolder(folder);
  await becomeTheSupervisor(folder, config, terminal);
  const prepared = await prepareAlone(folder, config, terminal, stop.signal);
  try {
    if (request === "start") await supervise(prepared, terminal, stop);
    else terminal.good("This machine is ready; npm start runs Sandgate.");
  } finally {
    await releaseMachine(config, terminal);
  }
}

/** The lock is held until this process ends, in whatever way. Who only sets up takes it as well: what is released at the end is in use otherwise. */
async function becomeTheSupervisor(folder: string, config: Config, terminal: Terminal): Promise<void> {
  if (dataOfServices() === pathsOf(config).data) {
    throw new StartFailure(
      `Services of systemd run Sandgate on ${config.dataDir}. Stop them first (systemctl stop sandgate.target), or set SANDGATE_DATA_DIR.`,
    );
  }
  const file = runLock(folder);
  if (!(await tryLock(file))) {
    throw new StartFailure(`Sandgate is already running on ${config.dataDir}: ${holderOf(file)}. Stop it first, or set SANDGATE_DATA_DIR and SANDGATE_PORT.`);
  }
  await endLeftovers(folder, leftoverPatienceMs, terminal);
}

async function supervise({ instance, volume, execServer }: Prepared, terminal: Terminal, stop: StopRequest): Promise<void> {
  const { config } = instance;
  const port = config.port || (await freePort(config.host));
  await checkPortIsFree(config.host, port, { part: "The gateway", setting: "SANDGATE_PORT" });
  await new Supervisor({ instance, volume, execServer, port, apiKey: await apiKeyOf(instance) }, terminal, stop).run();
}

function exitCodeOf(error: unknown, terminal: Terminal, stop: StopRequest): number {
  if (stop.signal.aborted && !(error instanceof StartFailure)) return exitCodes.interrupted;
  const isForPerson = error instanceof StartFailure || error instanceof ConfigError || error instanceof CommandError || error instanceof UntrustedPath;
  terminal.bad(isForPerson ? error.message : String(error instanceof Error ? error.stack : error));
  return error instanceof ConfigError ? exitCodes.badSetting : exitCodes.failed;
}

process.env.PATH = searchPath; // npm's PATH begins with folders where anybody may have placed programs with common names
const terminal = new Terminal(process.stdout);
const stop = listenForStop();
try {
  const request = parseRequest(process.argv.slice(2));
  if (request === "help") console.log(helpText());
  else {
    takeSettings();
    const config = loadConfig();
    forgetSecrets();
    await main(request, config, terminal, stop);
  }
  process.exit(exitCodes.done);
} catch (error) {
  process.exit(exitCodeOf(error, terminal, stop));
}
