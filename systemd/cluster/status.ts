/** How the cluster is. */
import type { StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../shared/bus/nats.ts";
import type { ClusterStatus } from "../../shared/cli/admin/cluster.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Instance } from "../base/instance.ts";
import { isNats, readMembers } from "../fleet/members.ts";
import { openStorageBus } from "./copies.ts";
import type { Node } from "./identity.ts";
import { openMemberBus } from "./member-list.ts";
import { placeOf } from "./place.ts";
import { isComplete, storedStreams } from "./replicas.ts";

function incompleteOf({ config, cluster }: StreamInfo): ClusterStatus["incomplete"][number] {
  const behind = (cluster?.replicas ?? [])
    .filter(({ current }) => !current)
    .map(({ name, lag = 0, offline }) => ({ node: name, lag, offline: offline ?? false }));
  return { name: config.name, leader: cluster?.leader ?? null, behind };
}

/** @throws {SandgateError} `unavailable` when too few servers run to say anything */
export async function statusOf(instance: Instance, node: Node, log: Logger): Promise<ClusterStatus> {
  const members = await readMembers(instance.paths);
  const place = await placeOf(instance, members);
  const servers = place?.servers ?? [];
  const buses = [await openStorageBus(instance, node, servers, log), await openMemberBus(instance, node, servers, log)];
  try {
    const streams = (await Promise.all(buses.map((bus: Bus) => storedStreams(bus)))).flat();
    const replicas = streams.flatMap(({ cluster }) => [...(cluster?.leader ? [{ name: cluster.leader, current: true }] : []), ...(cluster?.replicas ?? [])]);
    const nodes = members.filter(isNats).map(({ id, state, place: at }) => {
      const own = replicas.filter(({ name }) => name === id);
      return { id, state, host: at?.host ?? null, copies: own.length, current: own.filter(({ current }) => current).length };
    });
    const incomplete = streams.filter((stream) => !isComplete(stream)).map(incompleteOf);
    return { nodes, streams: streams.length, complete: streams.length - incomplete.length, incomplete };
  } finally {
    for (const bus of buses) await bus.close();
  }
}
