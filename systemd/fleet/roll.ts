/** The list of machines, wherever it is kept: in a file while there is one NATS server, by the servers when there are several. */
import { withPort } from "../../shared/util/host.ts";
import type { Logger } from "../../shared/util/log.ts";
import { within } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { run } from "../base/run.ts";
import { applyAlone } from "../cluster/apply.ts";
import { type Node, readNode } from "../cluster/identity.ts";
import { refuseToLeave, removeNode } from "../cluster/leaving.ts";
import { type MemberList, openMemberList } from "../cluster/member-list.ts";
import { placeOf } from "../cluster/place.ts";
import { membersHere } from "../cluster/registration.ts";
import { isNats, type Member, readMembers } from "./members.ts";

const openMs = 15_000;

export interface Roll extends AsyncDisposable {
  members(): Promise<readonly Member[]>;
  /** Keeps it, and has the server of this machine know it. */
  put(member: Member): Promise<void>;
  /** Removes a member, with what runs on the same machine. @returns what is to be thought of */
  remove(id: string): Promise<{ readonly note?: string }>;
  /** Where a machine that joins reaches the bus. @param own the address of this machine */
  servers(own: string): Promise<readonly string[]>;
}

export async function rollOf(instance: Instance, log: Logger): Promise<Roll> {
  const node = await readNode(instance);
  return node ? keptByServers(instance, node, await opened(instance, node, log), log) : inFile(instance);
}

const own = (instance: Instance, address: string): string => `nats://${withPort(address, instance.config.natsPort)}`;

const unknown = (id: string): StartFailure => new StartFailure(`${id} is none of this installation's other machines; see: sandgate-admin members`);
const isNodeId = (id: string): boolean => /^nats_[0-9a-z]{26}$/.test(id);

function inFile(instance: Instance): Roll {
  const members = (): Promise<Member[]> => readMembers(instance.paths);
  return {
    members,
    put: async (member) => applyAlone(instance, [...(await members()), member]),
    remove: async (id) => {
      if (!(await members()).some((member) => member.id === id)) throw unknown(id);
      await applyAlone(
        instance,
        (await members()).filter((member) => member.id !== id),
      );
      return {};
    },
    servers: async (address) => [own(instance, address)],
    [Symbol.asyncDispose]: async () => {},
  };
}

function keptByServers(instance: Instance, node: Node, list: MemberList, log: Logger): Roll {
  const members = (): Member[] => [...list.members.values()];
  const place = () => placeOf(instance, members());
  return {
    members: async () => members(),
    put: async (member) => {
      // A machine that joins a cluster is part of it from the beginning.
      const isPart = (await place())?.self?.state === "active";
      await list.members.put(member.id, isNats(member) && isPart ? { ...member, state: "active" } : member);
      await applyAlone(instance, members());
    },
    remove: async (id) => {
      refuseToLeave(node, id, members());
      if (!members().some((member) => member.id === id) && !isNodeId(id)) throw unknown(id);
      const leaving = members().filter((member) => member.id === id || ("machine" in member && member.machine === id));
      // One that an interrupted command has taken off the list may still have to be taken out of the cluster.
      const wasActive = leaving.length === 0 || leaving.some((member) => isNats(member) && member.state === "active");
      for (const member of leaving) await list.members.delete(member.id);
      await applyAlone(instance, members());
      if (!wasActive) return {};
      await removeNode(instance, node, (await place())?.servers ?? [], id, log);
      const left = members().filter((member) => isNats(member) && member.state === "active").length;
      return left < 3
        ? {
            note: `Only ${left} NATS servers are left, and nothing works unless all of them run. Let another machine join: sandgate-admin join-token --role all`,
          }
        : {};
    },
    servers: async (address) => [own(instance, address), ...((await place())?.servers.slice(1) ?? [])],
    [Symbol.asyncDispose]: () => list[Symbol.asyncDispose](),
  };
}

/** @throws {StartFailure} if the servers do not answer in time */
async function opened(instance: Instance, node: Node, log: Logger): Promise<MemberList> {
  const servers = (await placeOf(instance, await readMembers(instance.paths)))?.servers ?? [];
  const opening = openMemberList(instance, node, servers, log);
  const list = await within(opening, openMs);
  if (list) return list;
  // Whatever it becomes, nobody waits for it any more.
  void opening.then(
    (late) => late[Symbol.asyncDispose](),
    () => {},
  );
  throw new StartFailure("The NATS servers do not answer; a majority of them must run. See: systemctl status sandgate-nats.service");
}

/** Begins the list that the servers keep, with all that the file has. */
export async function beginList(instance: Instance, node: Node, log: Logger): Promise<Roll> {
  const all: Member[] = [...(await readMembers(instance.paths)), ...(await membersHere(instance, node))];
  await applyAlone(instance, all);
  const list = await opened(instance, node, log);
  for (const member of all) await list.members.put(member.id, member);
  await run(["systemctl", "start", "sandgate-cluster.service"]);
  return keptByServers(instance, node, list, log);
}
