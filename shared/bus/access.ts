/** How the parts get onto the bus, from their settings. */
import type { Config } from "../config.ts";
import type { BusAccess } from "./connect.ts";
import { workerInbox } from "./permissions.ts";
import { storePrefix, subjects } from "./subjects.ts";

type Settings = Pick<Config, "natsNkey" | "natsCa">;

const withCa = ({ natsCa }: Settings): BusAccess => (natsCa ? { ca: natsCa } : {});

/** A gateway's. @param peer its process. */
export function gatewayAccess(config: Settings, peer: string): BusAccess {
  const [nkey] = seedsOf(config);
  return { ...withCa(config), ...(nkey ? { nkey } : {}), inbox: subjects.inbox(peer) };
}

/** A worker's: one to talk, one for the storage. Without nkeys both are as the URL says, and nothing bounds them. */
export function workerAccess(config: Settings, workerId: string): { calls: BusAccess; storage: BusAccess } {
  const [nkey, storeNkey] = seedsOf(config);
  const common = { ...withCa(config), inbox: subjects.inbox(workerInbox(workerId)) };
  return {
    calls: { ...common, ...(nkey ? { nkey } : {}) },
    storage: { ...common, ...(storeNkey ? { nkey: storeNkey, storePrefix } : nkey ? { nkey } : {}) },
  };
}

const seedsOf = ({ natsNkey }: Settings): string[] => natsNkey.split(/\s+/).filter(Boolean);
