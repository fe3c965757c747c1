/** What this machine's NATS server is among those of the installation, by the list of machines. */
import { reachedHere, withPort } from "../../shared/util/host.ts";
import type { Instance } from "../base/instance.ts";
import { isNats, type Member, type NatsMember } from "../fleet/members.ts";
import { type Node, readNode } from "./identity.ts";

/** A node that has said where it is. */
export type PlacedNode = NatsMember & Required<Pick<NatsMember, "place">>;
export const isPlaced = (member: Member): member is PlacedNode => isNats(member) && member.place !== undefined;

/** `alone`: the only server, until there is a cluster. `waiting`: none runs here yet. */
export type Mode = "alone" | "waiting" | "clustered";

export interface Place {
  readonly node: Node;
  readonly self: NatsMember | undefined;
  readonly mode: Mode;
  /** All nodes that talk to each other, this one included. */
  readonly nodes: readonly PlacedNode[];
  /** Where the parts of this machine reach the bus, this machine's own server first. */
  readonly servers: readonly string[];
}

/** Undefined where there is only one NATS server. @param members the list of machines as it is known here */
export async function placeOf(instance: Instance, members: readonly Member[]): Promise<Place | undefined> {
  const node = await readNode(instance);
  if (!node) return undefined;
  const self = members.filter(isNats).find(({ id }) => id === node.id);
  const mode = modeOf(node, self);
  const nodes = members.filter(isPlaced).filter(({ state }) => state !== "waiting");
  const isUsable = self?.state === "active" || mode === "alone";
  const others = nodes.filter(({ id, state }) => id !== node.id && state === "active").map(urlOf);
  const own = `nats://${withPort(reachedHere(instance.config.natsHost), instance.config.natsPort)}`;
  return { node, self, mode, nodes, servers: isUsable ? [own, ...(mode === "alone" ? [] : others)] : node.servers };
}

/** The first machine goes on alone until the cluster has everything that it stores. */
function modeOf({ servers }: Node, self: NatsMember | undefined): Mode {
  if (self?.state === "active") return "clustered";
  if (servers.length === 0) return "alone";
  return self?.state === "starting" ? "clustered" : "waiting";
}

export const urlOf = ({ place: { host, port } }: PlacedNode): string => `nats://${withPort(host, port)}`;
export const routeOf = ({ place: { host, clusterPort } }: PlacedNode): string => `nats://${withPort(host, clusterPort)}`;
