/** The installation on this machine, as its operator's commands find it. */
import { existsSync } from "node:fs";
import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Config, loadConfig, processEnvironment } from "../../shared/config.ts";
import { appDir } from "../../shared/programs.mjs";
import type { Environment } from "../../shared/setting-kinds.ts";
import { attempt } from "../../shared/util/attempt.ts";
import { StartFailure } from "../base/failure.ts";
import { type Instance, instanceOf, pathsOf } from "../base/instance.ts";
import { takeSettings } from "../base/settings.ts";
import { findAccounts } from "../setup/account.ts";
import { natsUrlHere } from "../supervisor/nats.ts";
import { settingsFile, settingsOf } from "../units/places.ts";

interface Here {
  readonly config: Config;
  /** Whether it runs, or is to run, as services of systemd. */
  readonly isServices: boolean;
  /** From which the settings are. */
  readonly environment: Environment;
}

/** What the settings say: those of services, if these have the data directory that is meant, else those of the environment. */
async function settingsHere(): Promise<Here> {
  if (existsSync(settingsFile) && loadConfig().dataDir === loadConfig({}).dataDir) {
    const environment = await settingsOf();
    return { config: loadConfig(environment), isServices: true, environment };
  }
  takeSettings();
  return { config: loadConfig(), isServices: false, environment: processEnvironment() };
}

/** @throws {StartFailure} if there is none, or it belongs to somebody else */
export async function installationHere(): Promise<Here & { readonly instance: Instance }> {
  const here = await settingsHere();
  const { data, supervisor } = pathsOf(here.config);
  const found = await lstat(supervisor).catch(() => undefined);
  if (!found) throw new StartFailure(`There is no installation in ${data}. SANDGATE_DATA_DIR selects another one.`);
  if (found.uid !== process.getuid?.())
    throw new StartFailure(`The installation in ${data} belongs to user ${found.uid}: run this as that user, or with sudo.`);
  const instance = instanceOf(here.config, await findAccounts(here.config), here.isServices ? "systemd" : "supervisor");
  const copy = join(data, "app");
  // Where the accounts cannot read the program, the set-up has copied it.
  return { ...here, instance: existsSync(copy) ? { ...instance, paths: { ...instance.paths, app: copy } } : instance };
}

/** Where the server of the installation listens. @throws {StartFailure} if it has none of its own, or none yet */
export async function natsOf({ config, paths }: Instance): Promise<string> {
  if (config.natsUrl) throw new StartFailure("The NATS server is not this installation's own: do this on the machine where it runs, or use its own tools.");
  const text = await readFile(paths.natsConf, "utf8").catch(() => "");
  const { listen = "" } = attempt(() => JSON.parse(text) as { listen?: string }) ?? {};
  const port = Number(listen.slice(listen.lastIndexOf(":") + 1));
  if (!port) throw new StartFailure(`No NATS server has been started in ${paths.data}: do this where it runs.`);
  return natsUrlHere(config.natsHost, port);
}

/** The version of this program. */
export const programVersion = async (): Promise<string> => (JSON.parse(await readFile(join(appDir, "package.json"), "utf8")) as { version: string }).version;
