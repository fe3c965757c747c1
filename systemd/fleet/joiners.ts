/**
 * Lets other machines into this installation, and shuts them out again: the work of `sandgate-admin join-token`, `members` and
 * `cluster`.
 */
import { existsSync } from "node:fs";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { basename } from "node:path";
import type { ClusterWork } from "../../shared/cli/admin/cluster.ts";
import { type Joiners, joiningRoles } from "../../shared/cli/admin/members.ts";
import { type Config, loadConfig, settings } from "../../shared/config.ts";
import { createLogger } from "../../shared/util/log.ts";
import { StartFailure } from "../base/failure.ts";
import { type Instance, instanceOf, runsHere } from "../base/instance.ts";
import { searchPath } from "../base/search-path.mjs";
import { makeFirstNode, readNode } from "../cluster/identity.ts";
import { placeOf } from "../cluster/place.ts";
import { findAccounts } from "../setup/account.ts";
import { setupLock } from "../supervisor/alone.ts";
import { type Action, record } from "../supervisor/audit.ts";
import { waitForLock } from "../supervisor/lock.ts";
import { natsUrlHere } from "../supervisor/nats.ts";
import { packagedCommand, settingsFile, settingsOf } from "../units/places.ts";
import { isAdmitted } from "./admission.ts";
import { readMembers } from "./members.ts";
import { beginList, type Roll, rollOf } from "./roll.ts";
import { encodeToken, makeToken } from "./token.ts";

/** What a command says, it says itself. */
const log = createLogger("admin", "silent");

export const joiners: Joiners = {
  members: () =>
    alone(async (_, roll) =>
      (await roll.members())
        .filter((member) => !("root" in member))
        .map(({ id, role, ...member }) => ({ id, role, ...("machine" in member ? { machine: member.machine } : {}) })),
    ),
  add: ({ role, address }) =>
    alone(async (instance, roll) => {
      if (!joiningRoles.includes(role)) throw new StartFailure(`--role must be ${joiningRoles.join(", ")}`);
      refuseLoopback(instance.config);
      const list = role === "nats" || role === "all" ? await withNode(instance, roll) : roll;
      const { member, token } = await makeToken(instance, role, await list.servers(address ?? addressOf(instance.config)), await readNode(instance));
      await list.put(member);
      await isAdmitted(instance, token);
      await recorded(instance, "adminLetMachineIn", member.id);
      return {
        id: member.id,
        role,
        command: `sudo ${existsSync(packagedCommand) ? basename(packagedCommand) : "systemd/install"} --join ${encodeToken(token)}`,
      };
    }),
  remove: (id) =>
    alone(async (instance, roll) => {
      const removed = await roll.remove(id);
      await recorded(instance, "adminRemoveMachine", id);
      return removed;
    }),
};

export const cluster: ClusterWork = {
  status: () =>
    alone(async (instance) => {
      const node = await readNode(instance);
      return node ? (await import("../cluster/status.ts")).statusOf(instance, node, log) : { nodes: [], streams: 0, complete: 0, incomplete: [] };
    }),
  form: (say) =>
    alone(async (instance) => {
      const node = await readNode(instance);
      if (!node) throw new StartFailure("This is the only machine with a NATS server. Let others join first: sudo sandgate-admin join-token --role all");
      const isNew = await (await import("../cluster/form.ts")).formCluster({ instance, node, log, say });
      if (isNew) await recorded(instance, "adminFormCluster", node.id);
      return isNew;
    }),
};

/** Does something that no other process does meanwhile, nor a set-up. @throws {StartFailure} where there is no NATS server of ours */
async function alone<T>(work: (instance: Instance, roll: Roll) => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) throw new StartFailure("Only root can do this; use sudo.");
  process.env.PATH = searchPath;
  const config = loadConfig(await settingsOf());
  const accounts = await findAccounts(config).catch(() => undefined);
  if (!accounts || !runsHere(config, "nats") || !config.natsPort)
    throw new StartFailure("No NATS server of services runs on this machine (sudo systemd/install); do this where it does.");
  const instance = instanceOf(config, accounts, "systemd");
  const lock = await waitForLock(setupLock(instance.paths.supervisor), new AbortController().signal);
  try {
    await using roll = await rollOf(instance, log);
    return await work(instance, roll);
  } finally {
    lock.release();
  }
}

/** In the audit record. */
async function recorded(instance: Instance, action: Action, target: string): Promise<void> {
  const { config, paths } = instance;
  const place = await placeOf(instance, await readMembers(paths));
  await record(instance, place?.servers.join(",") ?? natsUrlHere(config.natsHost, config.natsPort), action, target);
}

/** The list as several NATS servers keep it: it begins when the second one is let in. */
async function withNode(instance: Instance, roll: Roll): Promise<Roll> {
  if (await readNode(instance)) return roll;
  return beginList(instance, await makeFirstNode(instance), log);
}

/** @throws {StartFailure} if no other machine can reach the NATS server */
function refuseLoopback({ natsHost }: Config): void {
  if (!/^(127\.|::1$|localhost$)/.test(natsHost)) return;
  throw new StartFailure(
    `The NATS server listens for this machine alone. Set ${settings.natsHost.name} in ${settingsFile} to an address of this machine that the others reach and strangers do not, then: sudo systemctl restart sandgate-setup.service`,
  );
}

/** @throws {StartFailure} if this machine has no address but those of its own */
function addressOf({ natsHost }: Config): string {
  if (!["0.0.0.0", "::"].includes(natsHost)) return natsHost;
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, address }) => !internal && (isIPv4(address) || natsHost === "::"));
  if (!found) throw new StartFailure("This machine has no address that others reach. Give one with --address.");
  return found.address;
}
