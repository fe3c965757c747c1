/** Opens connections to NATS. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { connect, type NatsConnection, nkeyAuthenticator } from "@nats-io/transport-node";
import { serverName } from "./subjects.ts";

/** How a part proves who it is, and how it knows the server. */
export interface BusAccess {
  /** The seed of an nkey: the server is sent a signature, never this. */
  readonly nkey?: string;
  /** A file with the certificate that the server must show; without it nothing is sent at all. */
  readonly ca?: string;
  /** Where replies to this part arrive. */
  readonly inbox?: string;
  /** What goes in front of everything that is asked of the storage. */
  readonly storePrefix?: string;
}

/** Connects, waits for a server that is not there yet, and connects again for ever. @param url as `Bus.connect` has it. */
export function openConnection(url: string, name: string, { nkey, inbox, ca }: BusAccess): Promise<NatsConnection> {
  const servers = url.split(",").map((item) => new URL(item.trim()));
  const first = servers[0];
  return connect({
    servers: servers.map((server) => server.host),
    name,
    ...(first?.username ? { user: decodeURIComponent(first.username), pass: decodeURIComponent(first.password) } : {}),
    ...(nkey ? { authenticator: nkeyAuthenticator(new TextEncoder().encode(nkey)) } : {}),
    ...(inbox ? { inboxPrefix: inbox } : {}),
    // Read again at every start only: who changes the certificate starts the parts again.
    ...(ca ? { tls: { ca: readFileSync(ca, "utf8"), ...nameOf(first?.hostname) } } : {}),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 50,
    waitOnFirstConnect: true,
    pingInterval: 5_000,
    maxPingOut: 2,
  });
}

/** An address is in no certificate; a pinned one for addresses has our own name in it. */
const nameOf = (host: string | undefined): { servername?: string } => (host && !isIP(host.replace(/^\[|\]$/g, "")) ? {} : { servername: serverName });
