/** Connections to NATS: how the parts get onto the bus, from their settings. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { Config } from "../config.ts";
import { nkeyAuthenticator, publicNkey } from "./nkey.ts";
import { gatewayInbox, workerInbox } from "./permissions.ts";
import { serverName, storePrefix, subjects } from "./subjects.ts";

/** How a part proves who it is, and how it knows the server. */
export interface BusAccess {
  /** The seed of an nkey: the server is sent a signature, never this. */
  readonly nkey?: string;
  /** A file with the certificate that the server must show; without it nothing is sent at all. */
  readonly ca?: string;
  /** Where replies to this part arrive. */
  readonly inbox?: string;
  /** Where those of gateways do, if elsewhere. */
  readonly gatewayReplies?: string;
  /** What goes in front of everything that is asked of the storage. */
  readonly storePrefix?: string;
}

/** A server that answers no ping for two of these is left for another one. */
const pingMs = 3_000;

/** For one server, before the next one is tried: a machine that is gone answers nothing at all. */
const dialMs = 10_000;
const eagerMs = 100;
const patientMs = 1_000;
/** So many attempts come quickly one after the other; then nobody is there, or nobody lets this part in. */
const eagerAttempts = 300;
const calmMs = 30_000;

/** How long to wait before the next attempt, in milliseconds. */
function pauses(): () => number {
  let attempts = 0;
  let lastMs = 0;
  return () => {
    const nowMs = performance.now();
    if (nowMs - lastMs > calmMs) attempts = 0;
    lastMs = nowMs;
    return (attempts++ < eagerAttempts ? eagerMs : patientMs) * (1 + Math.random() / 2);
  };
}

const serversOf = (url: string): URL[] => url.split(",").map((item) => new URL(item.trim()));

/** The servers of a URL without what they are logged in to with. @param url as `Bus.connect` has it. */
export const hostsOf = (url: string): string[] => serversOf(url).map(({ host }) => host);

/**
 * Connects, waits for a server that is not there yet, and connects again for ever.
 *
 * @param url as `Bus.connect` has it.
 * @param isPatient false: a server that does not let it in is the end of it.
 */
export function openConnection(url: string, name: string, { nkey, inbox, ca }: BusAccess, isPatient = true): Promise<NatsConnection> {
  const first = serversOf(url)[0];
  return connect({
    servers: hostsOf(url),
    name,
    ...(first?.username ? { user: decodeURIComponent(first.username), pass: decodeURIComponent(first.password) } : {}),
    ...(nkey ? { authenticator: nkeyAuthenticator(nkey) } : {}),
    ...(inbox ? { inboxPrefix: inbox } : {}),
    // Read again at every start only: who changes the certificate starts the parts again.
    ...(ca ? { tls: trusting(readFileSync(ca, "utf8"), first?.hostname) } : {}),
    maxReconnectAttempts: -1,
    reconnectDelayHandler: pauses(),
    // A server that does not know this part yet may come to know it, or another one does.
    ignoreAuthErrorAbort: isPatient,
    timeout: dialMs,
    waitOnFirstConnect: true,
    // In the order given: the server on the same machine comes first. Those that it tells of come last.
    noRandomize: true,
    pingInterval: pingMs,
    maxPingOut: 2,
  });
}

/** An owned server's certificate names neither host nor address, but always has our own name. */
function trusting(ca: string, host = ""): { ca: string; servername?: string } {
  const isOwned = isIP(host.replace(/^\[|\]$/g, "")) !== 0 || new X509Certificate(ca).checkHost(serverName) !== undefined;
  return { ca, ...(isOwned ? { servername: serverName } : {}) };
}

type Settings = Pick<Config, "natsNkey" | "natsCa">;

const withCa = ({ natsCa }: Settings): BusAccess => (natsCa ? { ca: natsCa } : {});

/** A gateway's. @param peer its process. */
export function gatewayAccess(config: Settings, peer: string): BusAccess {
  const [nkey] = seedsOf(config);
  const identity = nkey ? gatewayInbox(publicNkey(nkey)) : peer;
  return { ...withCa(config), ...(nkey ? { nkey } : {}), inbox: subjects.inbox(identity), gatewayReplies: subjects.gatewayReplies(identity) };
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
