/** Whether the running NATS server knows a member that was just let in. */
import { openConnection } from "../../shared/bus/connect.ts";
import { publicNkey } from "../../shared/bus/nkey.ts";
import { gatewayInbox, workerInbox } from "../../shared/bus/permissions.ts";
import { bucketStream, buckets, memberBucket, storeCalls, storePrefix, subjects } from "../../shared/bus/subjects.ts";
import { pause, until } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { reload } from "../cluster/apply.ts";
import { secretsOf } from "../supervisor/bus-identities.ts";
import { natsUrlHere } from "../supervisor/nats.ts";
import type { Token } from "./token.ts";

const admittedMs = 20_000;
const askMs = 2_000;

/** Resolves when the server knows the member. @throws {StartFailure} if it does not come to know it */
export async function isAdmitted(instance: Instance, token: Token): Promise<void> {
  // The server brings the storage into a new account only when it reads its configuration another time.
  const known = async (): Promise<boolean> => {
    if (await isKnown(instance, token)) return true;
    await reload();
    return false;
  };
  if (await until(known, { timeoutMs: admittedMs, pollMs: 100 })) return;
  throw new StartFailure("The NATS server does not take the new member; see: journalctl -t sandgate-nats");
}

/** Who asks, and what: what it stores must answer as well. */
function questionOf({ role, id, seeds }: Token): { readonly nkey: string; readonly inbox: string; readonly asked: string } {
  const [first = "", second = ""] = seeds;
  const info = (stream: string): string => storeCalls.info(stream);
  if (role === "worker") return { nkey: second, inbox: workerInbox(id), asked: `${storePrefix}.${info(bucketStream(buckets.sandboxes))}` };
  const bucket = role === "gateway" ? buckets.sandboxes : memberBucket;
  return { nkey: first, inbox: role === "gateway" ? gatewayInbox(publicNkey(first)) : id, asked: `${storeCalls.prefix}.${info(bucketStream(bucket))}` };
}

async function isKnown(instance: Instance, token: Token): Promise<boolean> {
  const { natsHost, natsPort } = instance.config;
  const { nkey, inbox, asked } = questionOf(token);
  const access = { nkey, ca: secretsOf(instance).certificate, inbox: subjects.inbox(inbox) };
  const opening = openConnection(natsUrlHere(natsHost, natsPort), "sandgate-join-token", access, false).catch(() => undefined);
  const connection = await Promise.race([opening, pause(askMs)]);
  if (!connection) return false;
  try {
    await connection.request(asked, "", { timeout: askMs });
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}
