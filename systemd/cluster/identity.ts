/**
 * What makes a machine's NATS server a node of a cluster: its identities on the bus, and the authority of the installation, by
 * which nodes and clients know a server. Every node has the authority's key, so that each of them can let in further machines,
 * also when the first one is gone for good.
 */
import { createUser } from "@nats-io/nkeys";
import Type, { type Static } from "typebox";
import type { BusAccess } from "../../shared/bus/connect.ts";
import { publicNkey } from "../../shared/bus/nkey.ts";
import { subjects } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { newId } from "../../shared/util/ids.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { readIfThere, replaceFile } from "../base/write-file.ts";
import type { NatsMember } from "../fleet/members.ts";
import { secretsOf, serverCertificate } from "../supervisor/bus-identities.ts";

const Node = Type.Object({
  id: Type.String(),
  authority: Type.Object({ certificate: Type.String(), key: Type.String() }),
  /** Of its nkeys: for the list of machines, and for the server's own account. */
  seeds: Type.Array(Type.String(), { minItems: 2, maxItems: 2 }),
  /** Where it has reached the NATS server when it joined; none on the first machine. */
  servers: Type.Array(Type.String()),
});
export type Node = Static<typeof Node>;

const check = checker(Node);

/** Undefined on a machine that is no node. @throws {StartFailure} */
export async function readNode({ paths }: Pick<Instance, "paths">): Promise<Node | undefined> {
  const text = await readIfThere(paths.natsCluster).catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return check(JSON.parse(text));
  } catch (error) {
    throw new StartFailure(`${paths.natsCluster} cannot be used: ${messageOf(error)}`);
  }
}

export const nodeText = (node: Node): string => `${JSON.stringify(node, undefined, 2)}\n`;

/** The secrets of a new node. */
export function newNode(authority: Node["authority"], servers: readonly string[]): Node {
  const seeds = Array.from({ length: 2 }, () => new TextDecoder().decode(createUser().getSeed()));
  return { id: newId("nats"), authority, seeds, servers: [...servers] };
}

/** Makes the first node of the machine that has the only NATS server so far. */
export async function makeFirstNode(instance: Instance): Promise<Node> {
  await serverCertificate(instance);
  const { certificate, serverKey } = secretsOf(instance);
  const authority = { certificate: (await readIfThere(certificate)) ?? "", key: (await readIfThere(serverKey)) ?? "" };
  const node = newNode(authority, []);
  await replaceFile(instance.paths.natsCluster, nodeText(node), { mode: 0o600 });
  return node;
}

/** The member of the list that a node is. */
export function memberOf({ id, seeds }: Node, state: NatsMember["state"]): NatsMember {
  const [nkey = "", systemNkey = ""] = seeds.map(publicNkey);
  return { role: "nats", id, nkey, systemNkey, state };
}

/** How a node gets onto the bus: to the list of machines, or into the server's own account. */
export function nodeAccess(instance: Instance, { id, seeds }: Node, as: "member" | "system"): BusAccess {
  return { nkey: seeds[as === "member" ? 0 : 1] ?? "", ca: secretsOf(instance).certificate, inbox: subjects.inbox(id) };
}
