/**
 * A line to each worker: all streams between the two go over one connection instead of NATS, which costs a small part of the CPU
 * time. The worker is asked over NATS to come to this gateway, with a token that nobody else is told. So nobody else can take its
 * place, and no worker can make this gateway connect to anything.
 */
import { randomBytes } from "node:crypto";
import { ask } from "../../shared/bus/calls.ts";
import { lineTokenBytes } from "../../shared/bus/contract/lines.ts";
import { processOfWorker, workerOfPeer } from "../../shared/bus/subjects.ts";
import { publicNameOf } from "../../shared/stream/line/tls.ts";
import { inBackground } from "../../shared/util/background.ts";
import { isLoopback } from "../../shared/util/host.ts";
import { backoffMs } from "../../shared/waiting.ts";
import type { Base } from "../base.ts";
import { type Door, type Guests, openPort, openSocket } from "./line-doors.ts";

/** The pauses between attempts to get a worker onto a line; streams go over NATS meanwhile. */
const again = { firstMs: 500, maxMs: 60_000 };

type Parts = Pick<Base, "config" | "id" | "bus" | "peers" | "hub" | "log">;

interface Attempts {
  failed: number;
  notBeforeMs: number;
}

/** Listens, and asks workers that come, or whose line is missed. @returns a function that ends this when all that was sent is taken */
export async function openLines(parts: Parts): Promise<() => Promise<void>> {
  const { log, hub, peers } = parts;
  const lines = new WorkerLines(parts);
  await lines.open();
  const seek = (peer: string): void => inBackground(log, "a worker could not be asked for a line", () => lines.seek(peer));
  peers.onCome(({ peer }) => seek(peer));
  peers.onGone((peer) => lines.forget(peer));
  hub.lines.onMissed(seek);
  for (const { peer } of peers.present()) seek(peer);
  return async () => {
    lines.stop();
    await hub.lines.close();
  };
}

const noSocket = "there is no Unix socket for the workers of this machine (is its path longer than 107 bytes?); their streams go over NATS";
const noPort = "there is no port for the workers of other machines; their streams go over NATS";

class WorkerLines implements Guests {
  readonly #parts: Parts;
  #here: Door | undefined;
  #elsewhere: Door | undefined;
  /** By public name, who was given a token that nobody has shown yet. */
  readonly #expected = new Map<string, { readonly token: string; readonly peer: string }>();
  readonly #attempts = new Map<string, Attempts>();
  #isStopped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Listens where the settings say so. */
  async open(): Promise<void> {
    const { config, id, bus, log } = this.#parts;
    const without = (message: string) => (err: unknown) => void log.warn({ event: "no_lines", err }, message);
    if (config.linesDir) this.#here = await openSocket(config.linesDir, `${id}.sock`, this, log).catch(without(noSocket));
    // Who reaches a NATS server by a loopback address has no other machines to listen for.
    const seenAt = bus.connection.info?.client_ip ?? "";
    const host = config.linesHost || (isLoopback(seenAt) ? "" : seenAt);
    if (config.linesPort && host) this.#elsewhere = await openPort(host, config.linesPort, this, log).catch(without(noPort));
  }

  stop(): void {
    this.#isStopped = true;
    this.#here?.close();
    this.#elsewhere?.close();
  }

  /** Asks a worker onto a line, unless it has just been asked in vain. */
  async seek(peer: string): Promise<void> {
    const { hub, log } = this.#parts;
    const attempts = this.#attempts.get(peer) ?? { failed: 0, notBeforeMs: 0 };
    const door = this.#doorFor(peer);
    if (!door || this.#isStopped || hub.lines.has(peer) || performance.now() < attempts.notBeforeMs) return;
    // Nor while it is being asked.
    attempts.notBeforeMs = Number.POSITIVE_INFINITY;
    this.#attempts.set(peer, attempts);
    try {
      await this.#ask(peer, door);
      attempts.failed = 0;
    } catch (err) {
      log[attempts.failed++ === 0 ? "info" : "debug"]({ event: "no_line", err, peer }, "a worker does not come onto a line; its streams go over NATS");
    } finally {
      attempts.notBeforeMs = performance.now() + backoffMs(attempts.failed, again);
    }
  }

  forget(peer: string): void {
    this.#attempts.delete(peer);
  }

  tokenOf(publicName: string): string | undefined {
    return this.#expected.get(publicName)?.token;
  }

  admit(token: string): ReturnType<Guests["admit"]> {
    const name = publicNameOf(token);
    const peer = this.#expected.get(name)?.peer;
    if (peer === undefined) return undefined;
    this.#expected.delete(name);
    return (socket) => this.#parts.hub.lines.add(peer, socket);
  }

  /** Gateways have no streams with each other. */
  #doorFor(peer: string): Door | undefined {
    const { peers } = this.#parts;
    if (!peers.has(peer) || workerOfPeer(peer) === undefined) return undefined;
    return peers.isNearbyWorker(peer) ? (this.#here ?? this.#elsewhere) : this.#elsewhere;
  }

  async #ask(peer: string, { place }: Door): Promise<void> {
    const { bus, hub, peers } = this.#parts;
    const token = randomBytes(lineTokenBytes).toString("hex");
    const name = publicNameOf(token);
    this.#expected.set(name, { token, peer });
    try {
      await peers.whilePresent(peer, ask(bus, "line", processOfWorker(peer), { peer: hub.peer, ...place, token }));
    } finally {
      this.#expected.delete(name);
    }
  }
}
