/** Sees to it that everything stored has as many copies as there are nodes for. */
import { Bus } from "../../shared/bus/nats.ts";
import { subjects } from "../../shared/bus/subjects.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Instance } from "../base/instance.ts";
import type { Member } from "../fleet/members.ts";
import { rootSeed, secretsOf } from "../supervisor/bus-identities.ts";
import type { Node } from "./identity.ts";
import { placeOf } from "./place.ts";
import { copiesFor, setCopies } from "./replicas.ts";

/** A connection to what gateways and workers store. @param servers where, the preferred one first */
export async function openStorageBus(instance: Instance, { id }: Node, servers: readonly string[], log: Logger): Promise<Bus> {
  const access = { nkey: await rootSeed(instance), ca: secretsOf(instance).certificate, inbox: subjects.inbox(`${id}.storage`) };
  return Bus.connect(servers.join(","), `sandgate-node-${id}-storage`, log, access);
}

/** Idempotent: every node does it, and all of them the same. @param buses to all accounts that store anything */
export async function keepCopies(instance: Instance, members: readonly Member[], buses: readonly Bus[], log: Logger): Promise<void> {
  const place = await placeOf(instance, members);
  const copies = copiesFor(place?.nodes.filter(({ state }) => state === "active").length ?? 0);
  if (place?.self?.state !== "active" || copies === undefined) return;
  for (const bus of buses) {
    if (!bus.connected) continue;
    const changed = await setCopies(bus, copies);
    if (changed.length > 0) log.info({ event: "copies_set", copies, streams: changed }, "what is stored has another number of copies");
  }
}
