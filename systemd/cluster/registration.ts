/** What this machine is in the list of all machines: a node, with the gateway and the worker that run beside it. */
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import type { Member, NatsMember } from "../fleet/members.ts";
import { gatewayIdentity, rootIdentity, workerIdentity } from "../supervisor/bus-identities.ts";
import { settingsFile } from "../units/places.ts";
import { workersHere } from "./apply.ts";
import { nodeCertificate } from "./certificates.ts";
import { memberOf, type Node } from "./identity.ts";

/** The members of the list that are on this machine. The state of the node is for others to decide. */
export async function membersHere(instance: Instance, node: Node): Promise<Member[]> {
  const idOf = (prefix: string): string => node.id.replace("nats_", prefix);
  const workers = await Promise.all((await workersHere(instance)).map((id) => workerIdentity(instance, id)));
  return [
    await nodeHere(instance, node),
    { role: "gateway", id: idOf("gw_"), nkey: await gatewayIdentity(instance), machine: node.id },
    { role: "gateway", id: idOf("root_"), nkey: await rootIdentity(instance), machine: node.id, root: true },
    ...workers.map((worker) => ({ role: "worker" as const, ...worker, machine: node.id })),
  ];
}

/** @throws {StartFailure} if no other machine can reach it */
export async function nodeHere(instance: Instance, node: Node): Promise<NatsMember> {
  const { natsHost: host, natsPort: port, natsClusterPort: clusterPort } = instance.config;
  if (/^(127\.|0\.0\.0\.0$|::1?$|localhost$)/.test(host)) {
    throw new StartFailure(`SANDGATE_NATS_HOST in ${settingsFile} has to be the address at which the other NATS servers reach this one.`);
  }
  return { ...memberOf(node, "waiting"), place: { host, port, clusterPort, fingerprint: await nodeCertificate(instance, node, host) } };
}
