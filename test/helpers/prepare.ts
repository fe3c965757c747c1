/** Where tests run: the machine prepared as `npm start` does it, with the same image store, so that nothing is built twice. */
import { appendFileSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Config, loadConfig } from "../../shared/config.ts";
import { type Instance, instanceOf } from "../../systemd/base/instance.ts";
import type { Terminal } from "../../systemd/base/terminal.ts";
import { findAccounts } from "../../systemd/setup/account.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { withReadableApp } from "../../systemd/setup/app-directory.ts";
import { defaultImageId } from "../../systemd/setup/default-image.ts";
import { dataDirectories } from "../../systemd/setup/directories.ts";
import { gvisorPackage } from "../../systemd/setup/gvisor.ts";
import { benchPackages, testPackages } from "../../systemd/setup/packages.ts";
import { podmanConfiguration } from "../../systemd/setup/podman-configuration.ts";
import { prepareMachine } from "../../systemd/setup/prepare.ts";
import { ensure } from "../../systemd/setup/step.ts";

/** Installs packages, makes users and the image, which is quick when that is done; test files find the program by their environment. */
export async function prepareTests(terminal: Terminal): Promise<void> {
  const { signal } = new AbortController();
  // Every test installation has a volume of its own.
  const { execServer = "" } = await prepareMachine({ ...loadConfig(), volume: "none" }, terminal, signal);
  process.env.TEST_EXEC_SERVER = execServer;
  const administrator = createAdministrator(terminal, signal);
  const config = loadConfig();
  await ensure(testPackages(administrator), terminal);
  await ensure(gvisorPackage(config, administrator), terminal);
  const { paths } = await withReadableApp(instanceOf(config, await findAccounts(config)), terminal);
  process.env.TEST_APP = paths.app;
}

/** The same for `npm run bench`. */
export async function prepareBench(terminal: Terminal): Promise<void> {
  await prepareTests(terminal);
  await ensure(benchPackages(createAdministrator(terminal, new AbortController().signal)), terminal);
}

/** The program that starts commands in sandboxes. */
export const preparedExecServer = (): string => process.env.TEST_EXEC_SERVER ?? "";

/** The installation that `prepareTests` has prepared. Only its image store is used. */
export async function preparedInstance(): Promise<Instance> {
  const config = loadConfig();
  return withPreparedApp(instanceOf(config, await findAccounts(config)));
}

/** That accounts may read the program was checked for all installations, which takes a while. */
function withPreparedApp(instance: Instance): Instance {
  const { TEST_APP: app } = process.env;
  if (!app) throw new Error("run this file with: npm test -- <part of its name>");
  return { ...instance, paths: { ...instance.paths, app } };
}

/** The id of its default image. */
export async function preparedImageId(): Promise<string | undefined> {
  return defaultImageId(await preparedInstance());
}

/** An installation with a data directory of its own that shares the image store of this machine, and what is meant by "default". */
export async function testInstance(dataDir: string, settings: Readonly<Record<string, string>>): Promise<Instance> {
  const config: Config = loadConfig({ ...process.env, SANDGATE_STORAGE_DIR: loadConfig().storageDir, ...settings, SANDGATE_DATA_DIR: dataDir });
  const instance = withPreparedApp(instanceOf(config, await findAccounts(config)));
  for (const step of [dataDirectories(instance), podmanConfiguration(instance)]) await step.provide({ say: () => {} });
  await borrowDefaultImage(instance);
  return instance;
}

/** Tells an installation with the image store of this machine what "default" means there, so that its start builds no other image. */
export async function borrowDefaultImage({ config, paths }: Instance): Promise<void> {
  if (config.storageDir === loadConfig().storageDir) copyFileSync((await preparedInstance()).paths.defaultImage, paths.defaultImage);
}

/** Lets an installation with a store of its own read the images of the shared one, without a copy of them. */
export function borrowImages({ paths }: Instance): void {
  appendFileSync(paths.storageConf, `[storage.options]\nadditionalimagestores = [${JSON.stringify(join(loadConfig().storageDir, "storage"))}]\n`);
}

/** Resident memory of a process in bytes; 0 when it is gone. */
export function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
