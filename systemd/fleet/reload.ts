/** Makes the running NATS server read its accounts again. */
import { openConnection } from "../../shared/bus/connect.ts";
import { workerInbox } from "../../shared/bus/permissions.ts";
import { bucketStream, buckets, peers, storeCalls, storePrefix, subjects } from "../../shared/bus/subjects.ts";
import { pause, until } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import { type Instance, runsHere } from "../base/instance.ts";
import { run } from "../base/run.ts";
import { secretsOf, workerIdOf } from "../supervisor/bus-identities.ts";
import { natsUrlHere, writeConfiguration } from "../supervisor/nats.ts";
import type { Token } from "./token.ts";

/** The server takes a signal at any time, and says nowhere but in its log when it is done. */
const takenMs = 500;
const admittedMs = 20_000;
const askMs = 2_000;

/**
 * Writes the accounts of all members and has the server use them. Connections of members that stay are kept.
 *
 * @param token of a new member; resolves when the server knows it
 * @throws {StartFailure} if it does not come to know it
 */
export async function admit(instance: Instance, token?: Token): Promise<void> {
  const { config } = instance;
  await writeConfiguration(instance, runsHere(config, "worker") ? [await workerIdOf(instance)] : [], config.natsPort);
  const reload = async (): Promise<void> => {
    await run(["systemctl", "reload", "sandgate-nats.service"]);
    await pause(takenMs);
  };
  await reload();
  if (!token) return;
  // The server brings the storage into a new account only when it reads its configuration another time.
  const isAdmitted = async (): Promise<boolean> => {
    if (await isKnown(instance, token)) return true;
    await reload();
    return false;
  };
  if (await until(isAdmitted, { timeoutMs: admittedMs, pollMs: 100 })) return;
  throw new StartFailure("The NATS server does not take the new member; see: journalctl -t sandgate-nats");
}

/** Whether the server lets it in; a worker's storage must answer as well. */
async function isKnown(instance: Instance, { role, id, seeds }: Token): Promise<boolean> {
  const isWorker = role === "worker";
  const { natsHost, natsPort } = instance.config;
  const nkey = seeds[isWorker ? 1 : 0] ?? "";
  const access = { nkey, ca: secretsOf(instance).certificate, inbox: subjects.inbox(isWorker ? workerInbox(id) : peers.gateway(id)) };
  const opening = openConnection(natsUrlHere(natsHost, natsPort), "sandgate-join-token", access).catch(() => undefined);
  const connection = await Promise.race([opening, pause(askMs)]);
  if (!connection) return false;
  try {
    const asked = `${isWorker ? storePrefix : storeCalls.prefix}.${storeCalls.info(bucketStream(buckets.sandboxes))}`;
    await connection.request(asked, "", { timeout: askMs });
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}
