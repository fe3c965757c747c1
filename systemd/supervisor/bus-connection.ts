/** How commands on the machine of the NATS server get onto the bus: as one of the gateways. */
import type { NatsConnection } from "@nats-io/transport-node";
import { openConnection } from "../../shared/bus/connect.ts";
import { peers, subjects } from "../../shared/bus/subjects.ts";
import { within } from "../../shared/waiting.ts";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { readIfThere } from "../base/write-file.ts";
import { secretsOf } from "./bus-identities.ts";

const connectMs = 10_000;

/** @param name of the command @throws {StartFailure} if the server does not answer */
export async function connectAs(name: string, instance: Instance, url: string): Promise<NatsConnection> {
  const { gateway, certificate } = secretsOf(instance);
  const nkey = (await readIfThere(gateway))?.trim() ?? "";
  const opening = openConnection(url, `sandgate-${name}`, { nkey, ca: certificate, inbox: subjects.inbox(peers.gateway(name)) });
  const connection = await within(opening, connectMs);
  if (connection) return connection;
  opening.then((late) => late.close()).catch(() => {});
  throw new StartFailure(`The NATS server of the installation does not answer on ${url}.`);
}
