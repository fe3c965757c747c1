/** Lets other machines into this installation, and shuts them out again: the work of `sandgate-admin join-token` and `members`. */
import { existsSync } from "node:fs";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { basename } from "node:path";
import { createUser } from "@nats-io/nkeys";
import { publicNkey } from "../../shared/bus/nkey.ts";
import type { Joiners } from "../../shared/cli/admin/members.ts";
import { type Config, loadConfig, settings } from "../../shared/config.ts";
import { withPort } from "../../shared/util/host.ts";
import { newId } from "../../shared/util/ids.ts";
import { StartFailure } from "../base/failure.ts";
import { type Instance, instanceOf, runsHere } from "../base/instance.ts";
import { searchPath } from "../base/search-path.mjs";
import { readIfThere } from "../base/write-file.ts";
import { findAccounts } from "../setup/account.ts";
import { setupLock } from "../supervisor/alone.ts";
import { secretsOf } from "../supervisor/bus-identities.ts";
import { apiKeyOf } from "../supervisor/credentials.ts";
import { waitForLock } from "../supervisor/lock.ts";
import { packagedCommand, settingsFile, settingsOf } from "../units/places.ts";
import { type Member, memberRoles, readMembers, writeMembers } from "./members.ts";
import { admit } from "./reload.ts";
import { encodeToken, type Token } from "./token.ts";

const decoder = new TextDecoder();

export const joiners: Joiners = {
  members: () => alone(async ({ paths }) => (await readMembers(paths)).map(({ id, role }) => ({ id, role }))),
  add: ({ role, address }) =>
    alone(async (instance) => {
      if (!memberRoles.includes(role)) throw new StartFailure(`--role must be ${memberRoles.join(" or ")}`);
      refuseLoopback(instance.config);
      const { member, token } = await makeToken(instance, role, address ?? addressOf(instance.config));
      await writeMembers(instance.paths, [...(await readMembers(instance.paths)), member]);
      await admit(instance, token);
      return {
        id: member.id,
        role,
        command: `sudo ${existsSync(packagedCommand) ? basename(packagedCommand) : "systemd/install"} --join ${encodeToken(token)}`,
      };
    }),
  remove: (id) =>
    alone(async (instance) => {
      const members = await readMembers(instance.paths);
      const others = members.filter((member) => member.id !== id);
      if (others.length === members.length) throw new StartFailure(`${id} is none of this installation's other machines; see: sandgate-admin members`);
      await writeMembers(instance.paths, others);
      await admit(instance);
    }),
};

/** Does something that no other process does meanwhile, nor a set-up. @throws {StartFailure} where there is no NATS server of ours */
async function alone<T>(work: (instance: Instance) => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) throw new StartFailure("Only root can do this; use sudo.");
  process.env.PATH = searchPath;
  const config = loadConfig(await settingsOf());
  const accounts = await findAccounts(config).catch(() => undefined);
  if (!accounts || !runsHere(config, "nats") || !config.natsPort)
    throw new StartFailure("No NATS server of services runs on this machine (sudo systemd/install); do this where it does.");
  const instance = instanceOf(config, accounts);
  const lock = await waitForLock(setupLock(instance.paths.supervisor), new AbortController().signal);
  try {
    return await work(instance);
  } finally {
    lock.release();
  }
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

/** A new member, and what it joins with. Only the latter has its secrets. */
async function makeToken(instance: Instance, role: Member["role"], address: string): Promise<{ member: Member; token: Token }> {
  const id = newId(role);
  const seeds = Array.from({ length: role === "worker" ? 2 : 1 }, () => decoder.decode(createUser().getSeed()));
  const [nkey = "", storeNkey = ""] = seeds.map(publicNkey);
  const member: Member = role === "worker" ? { role, id, nkey, storeNkey } : { role, id, nkey };
  const certificate = (await readIfThere(secretsOf(instance).certificate)) ?? "";
  const url = `nats://${withPort(address, instance.config.natsPort)}`;
  const token = { version: 1, role, id, url, certificate, seeds } as const;
  return { member, token: role === "gateway" ? { ...token, apiKey: await apiKeyOf(instance) } : token };
}
