/** The list of all machines of an installation with several NATS servers: kept by these servers, and known to each of them. */
import { BucketMirror } from "../../shared/bus/mirror.ts";
import { Bus } from "../../shared/bus/nats.ts";
import { memberBucket } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Instance } from "../base/instance.ts";
import { Member } from "../fleet/members.ts";
import { type Node, nodeAccess } from "./identity.ts";

const check = checker(Member);

export interface MemberList extends AsyncDisposable {
  readonly bus: Bus;
  /** By id. */
  readonly members: BucketMirror<Member>;
}

/** A connection to where the list is kept. */
export const openMemberBus = (instance: Instance, node: Node, servers: readonly string[], log: Logger): Promise<Bus> =>
  Bus.connect(servers.join(","), `sandgate-node-${node.id}`, log, nodeAccess(instance, node, "member"));

/** Opens the list, with all of it in memory. Waits until a server answers. @param servers where, the preferred one first */
export async function openMemberList(instance: Instance, node: Node, servers: readonly string[], log: Logger): Promise<MemberList> {
  const bus = await openMemberBus(instance, node, servers, log);
  try {
    const members = await BucketMirror.watch(bus, memberBucket, check, log);
    const close = async (): Promise<void> => {
      members.stop();
      await bus.close();
    };
    return { bus, members, [Symbol.asyncDispose]: close };
  } catch (error) {
    await bus.close();
    throw error;
  }
}
