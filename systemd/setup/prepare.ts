/** The complete set-up, in order. On a machine that is ready it takes about a second. */
import type { Config } from "../../shared/config.ts";
import { accountEnvironment, inPodmanNamespace } from "../base/as-account.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import { type Account, type Instance, instanceOf, runsHere, type Starter } from "../base/instance.ts";
import { run } from "../base/run.ts";
import type { Terminal } from "../base/terminal.ts";
import { endUnusedPause } from "../supervisor/pause.ts";
import type { NoVolume, Volume } from "../volume/volume.ts";
import { findAccounts, serviceAccounts } from "./account.ts";
import { type Administrator, createAdministrator } from "./administrator.ts";
import { withReadableApp } from "./app-directory.ts";
import { offerControlGroups } from "./control-groups.ts";
import { defaultImage } from "./default-image.ts";
import { deviceFiles } from "./devices.ts";
import { checkReach, dataDirectories } from "./directories.ts";
import { execServer } from "./exec-server.ts";
import { formerOwner } from "./former-owner.ts";
import { gvisorPackage } from "./gvisor.ts";
import { imageBuildingPackages, systemPackages } from "./packages.ts";
import { podmanConfiguration } from "./podman-configuration.ts";
import { instanceDirectory, runtimeDirectory } from "./runtime-directory.ts";
import { ensure } from "./step.ts";
import { sandboxIds, subordinateIds } from "./subordinate-ids.ts";
import { userManager } from "./user-manager.ts";
import { userNamespaces } from "./user-namespaces.ts";
import { prepareVolume, whyNoVolume } from "./volume.ts";

/** What the parts need to run. */
export interface Prepared {
  readonly instance: Instance;
  readonly volume: Volume | NoVolume;
  /** The path of the program that starts commands in sandboxes; undefined where it cannot be made. */
  readonly execServer: string | undefined;
}

/** @throws {StartFailure} with a message for the user. */
export async function prepareMachine(config: Config, terminal: Terminal, signal: AbortSignal, starter?: Starter): Promise<Prepared> {
  const administrator = createAdministrator(terminal, signal);
  const hasWorker = runsHere(config, "worker");
  const hasVolume = (await whyNoVolume(config, administrator)) === undefined;
  await ensure(systemPackages(config, { hasVolume }, administrator), terminal);
  if (hasWorker && config.isolation === "strong") await ensure(gvisorPackage(config, administrator), terminal);
  await ensure(serviceAccounts(config, administrator), terminal);
  const accounts = await findAccounts(config);
  if (hasWorker && starter === "systemd") await ensure(userManager(accounts.worker), terminal);
  const hasMoreIds = hasWorker && (await prepareAccount(accounts.worker, config, administrator, terminal));
  const planned = instanceOf(config, accounts, starter);
  await ensure(formerOwner(planned), terminal);
  await ensure(dataDirectories(planned), terminal);
  await checkReach(planned);
  if (!hasWorker) return { instance: await withReadableApp(planned, terminal), execServer: undefined, volume: { reason: "no worker runs on this machine" } };
  await ensure(instanceDirectory(planned), terminal);
  const instance = await withReadableApp(planned, terminal);
  await ensure(podmanConfiguration(instance), terminal);
  // The next one has them.
  if (hasMoreIds) await endUnusedPause(instance);
  await checkRootlessPodman(instance, signal);
  await prepareImage(instance, administrator, terminal, signal);
  const server = await execServer(instance, administrator, terminal);
  // Last, because whoever gets it has to unmount it.
  return { instance, execServer: server, volume: await prepareVolume(instance, administrator) };
}

/** What the kernel and the login manager give the worker's account. @returns whether it has more ids than before */
async function prepareAccount(account: Account, config: Config, administrator: Administrator, terminal: Terminal): Promise<boolean> {
  await ensure(subordinateIds(account, administrator), terminal);
  const hasMoreIds = await sandboxIds(account, config, administrator);
  await ensure(runtimeDirectory(account, administrator), terminal);
  await ensure(deviceFiles(administrator), terminal);
  await ensure(userNamespaces(administrator), terminal);
  await offerControlGroups(account, administrator);
  return hasMoreIds;
}

async function prepareImage(instance: Instance, administrator: Administrator, terminal: Terminal, signal: AbortSignal): Promise<void> {
  const image = defaultImage(instance, { administrator, signal });
  try {
    if (await image.isToBeBuilt()) await ensure(imageBuildingPackages(administrator), terminal);
    await ensure(image, terminal);
  } catch (error) {
    if (signal.aborted || !(await image.isUsable())) throw error;
    terminal.warn(`The default image of an earlier version stays in use: ${messageOf(error)}`);
  }
}

/** Fails here with Podman's message rather than later in a worker that keeps restarting. */
async function checkRootlessPodman(instance: Instance, signal: AbortSignal): Promise<void> {
  const options = { env: accountEnvironment(instance), cwd: "/", signal, timeoutMs: 60_000 };
  await run(inPodmanNamespace(instance, ["true"]), options).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new StartFailure(`Rootless containers do not work for ${instance.account.name}.\n${messageOf(error)}\n${namespaceAdvice()}`);
  });
}

function namespaceAdvice(): string {
  return "User namespaces must be allowed: see `sysctl user.max_user_namespaces kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns`.";
}
