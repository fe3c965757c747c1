/**
 * Backups of an installation with several NATS servers, which any of their machines can make. What they stored is restored to one
 * server, which others join again: a copy of a cluster would have to begin on all of its machines at the same moment.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { StreamShape } from "../../shared/bus/stream-copies.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { readNode } from "../cluster/identity.ts";
import { isPlaced, placeOf, urlOf } from "../cluster/place.ts";
import { type Member, membersText, parseMembers, readMembers } from "../fleet/members.ts";
import { greets } from "../supervisor/nats.ts";
import { membersName } from "./kept.ts";

/** @throws {StartFailure} on a machine whose NATS server does not run yet */
export async function refuseWaiting(instance: Instance): Promise<void> {
  const place = await placeOf(instance, await readMembers(instance.paths));
  if (place?.mode !== "waiting") return;
  throw new StartFailure("The NATS server of this machine waits to be a node of a cluster, and has nothing yet: do this on the first machine.");
}

/** What a lone server presents, with the same certificate: in a cluster only nodes have it, as the authority's. */
export async function authorityKey(instance: Instance): Promise<string | undefined> {
  return (await readNode(instance))?.authority.key;
}

/** @throws {StartFailure} while another server of the backed up cluster runs, which has newer data and would be a second installation */
export async function refuseBesideNodes(dir: string): Promise<void> {
  for (const node of (await membersIn(dir)).filter(isPlaced)) {
    if (!(await greets(new URL(urlOf(node))))) continue;
    throw new StartFailure(
      `The NATS server ${node.id} of this cluster runs at ${node.place.host}. A machine that was lost is replaced, not restored (sandgate-admin join-token --role all on one that runs). ` +
        "To go back to this backup, stop all of them first: systemctl stop sandgate.target sandgate-setup.service",
    );
  }
}

/** The list of machines without those that had a NATS server, and what ran on them: they join the restored server anew. */
export async function membersToRestore(dir: string): Promise<string> {
  const members = await membersIn(dir);
  return membersText(members.filter((member) => member.role !== "nats" && member.machine === undefined));
}

/** A stream with a single copy. */
export const onOneServer = ({ config, state }: StreamShape): StreamShape => ({ config: { ...config, num_replicas: 1 }, state });

async function membersIn(dir: string): Promise<Member[]> {
  const path = join(dir, membersName);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new StartFailure(`${path} cannot be read: ${messageOf(error)}`);
  });
  return text === undefined ? [] : parseMembers(path, text);
}
