/** How root's commands on the machine of the NATS server get onto the bus. */
import type { NatsConnection } from "@nats-io/transport-node";
import { openConnection } from "../../shared/bus/connect.ts";
import { subjects } from "../../shared/bus/subjects.ts";
import { within } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { rootSeed, secretsOf } from "./bus-identities.ts";

const connectMs = 10_000;

/** @param name of the command @throws {StartFailure} if the server does not answer */
export async function connectAs(name: string, instance: Instance, url: string): Promise<NatsConnection> {
  const access = { nkey: await rootSeed(instance), ca: secretsOf(instance).certificate, inbox: subjects.inbox(`root.${name}`) };
  const opening = openConnection(url, `sandgate-${name}`, access);
  const connection = await within(opening, connectMs);
  if (connection) return connection;
  opening.then((late) => late.close()).catch(() => {});
  throw new StartFailure(`The NATS server of the installation does not answer on ${url}.`);
}
