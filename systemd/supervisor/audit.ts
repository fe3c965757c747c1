/** What is done on the machine of the NATS server itself, in the audit record: no gateway hears of it. */
import { hostname } from "node:os";
import { jetstream } from "@nats-io/jetstream";
import { storeEntry } from "../../shared/bus/audit-record.ts";
import { newId } from "../../shared/util/ids.ts";
import { messageOf } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { Terminal } from "../base/terminal.ts";
import { connectAs } from "./bus-connection.ts";

export type Action = "adminBackUp" | "adminFormCluster" | "adminLetMachineIn" | "adminRemoveMachine";

/**
 * Records what was done, or says that it could not be recorded: it is done in any case.
 *
 * @param url of the NATS server
 * @param target the id of what it was done to
 */
export async function record(instance: Instance, url: string, action: Action, target: string | null = null): Promise<void> {
  const who = { by: "machine", operator: true, account_id: null, key_id: null, address: hostname() } as const;
  const what = { action, outcome: "ok", target, target_account_id: null, request_id: newId("request") };
  try {
    const connection = await connectAs("audit", instance, url);
    await storeEntry(jetstream(connection), { time: new Date().toISOString(), ...who, ...what }).finally(() => connection.close());
  } catch (error) {
    new Terminal(process.stderr).warn(`This is not in the audit record: ${messageOf(error)}`);
  }
}
