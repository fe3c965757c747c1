/** Takes a node out of the cluster for good. */
import { Bus } from "../../shared/bus/nats.ts";
import { storeCalls } from "../../shared/bus/subjects.ts";
import type { Logger } from "../../shared/util/log.ts";
import { until } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { isNats, type Member } from "../fleet/members.ts";
import { type Node, nodeAccess } from "./identity.ts";

const askMs = 5_000;
const removedMs = 30_000;
const pollMs = 500;
/** What the server says of a node that is not in the cluster. */
const noSuchNode = 10_044;

/** @throws {StartFailure} where the others could not go on without it, or it is the machine itself */
export function refuseToLeave(node: Node, id: string, members: readonly Member[]): void {
  const leaving = members.filter(isNats).find((member) => member.id === id);
  if (!leaving) return;
  if (id === node.id) throw new StartFailure("This is the machine itself; do this on another one.");
  const left = members.filter(isNats).filter((member) => member.state === "active" && member.id !== id).length;
  if (leaving.state === "active" && left < 2)
    throw new StartFailure("One NATS server is no cluster. Let another machine join first: sudo sandgate-admin join-token --role all");
}

/** Has the other nodes forget one; what it had a copy of is copied to another one, if there is any. @throws {StartFailure} */
export async function removeNode(instance: Instance, node: Node, servers: readonly string[], id: string, log: Logger): Promise<void> {
  const bus = await Bus.connect(servers.join(","), `sandgate-node-${node.id}-system`, log, nodeAccess(instance, node, "system"));
  try {
    const isRemoved = async (): Promise<boolean> => {
      const answer = await bus.connection
        .request(`${storeCalls.prefix}.SERVER.REMOVE`, JSON.stringify({ peer: id }), { timeout: askMs })
        .catch(() => undefined);
      const { success, error } = answer?.json<{ success?: boolean; error?: { err_code: number } }>() ?? {};
      return success === true || error?.err_code === noSuchNode;
    };
    if (!(await until(isRemoved, { timeoutMs: removedMs, pollMs })))
      throw new StartFailure(`The cluster has not let go of ${id}: it takes a majority of its servers. Try again when they run.`);
  } finally {
    await bus.close();
  }
}
