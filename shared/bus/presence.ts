/**
 * Heartbeats: who is there, and who has gone. A peer that misses a beat, or whose line breaks, is asked for: the bus knows at once
 * that nobody is there any more, so that who is gone is known as gone within three seconds. So is one on another machine that says nothing,
 * because that machine may be cut off. On the same machine it may only be slow, like everything there that wants a CPU: after
 * three beats it gets no new work, and it is gone when it has been silent for longer than any load explains.
 */
import { hostname } from "node:os";
import { SandgateError } from "../errors.ts";
import { every, inBackground } from "../util/background.ts";
import type { Logger } from "../util/log.ts";
import { answer, ask } from "./calls.ts";
import { NoResponder, onceRead, PeerGone } from "./failures.ts";
import { type Presence, Presence as PresenceSchema } from "./heartbeat.ts";
import { decodeJson, messageChecker } from "./messages.ts";
import type { Bus } from "./nats.ts";
import { peerOfPresence, peers, subjects, workerOfPeer } from "./subjects.ts";

const beatMs = 1_000;
/** How often silences are measured. */
const checkMs = 250;
/** A peer that says nothing for so long is asked for. */
const askAfterMs = 1_700;
/** A peer that says nothing for so long is silent. */
const silentAfterMs = 3_500;
/** The longest silence of a peer that is connected: it was stopped or hangs. */
const goneAfterMs = 10_000;
/** The same on another machine, which may be cut off. With a check and the beat before it, this is within three seconds. */
const elsewhereGoneAfterMs = 2_700;
const checkPresence = messageChecker(PresenceSchema, "a heartbeat");

interface Known {
  readonly presence: Presence;
  /** How often it was away from the bus; undefined until its first beat since this process was, which has ended everything itself. */
  outages: number | undefined;
  seenAtMs: number;
  /** Whether it is asked for at the next check, whenever it was last heard. */
  isDoubted: boolean;
  isAskedFor: boolean;
}

type Describe = () => Omit<Presence, "peer" | "host" | "outages">;

export class PeerWatch {
  readonly peer: string;
  readonly #bus: Bus;
  readonly #log: Logger;
  #describe: Describe | undefined;
  readonly #peers = new Map<string, Known>();
  readonly #come = new Set<(presence: Presence) => void>();
  readonly #gone = new Set<(peer: string) => void>();
  readonly #broken = new Set<(peer: string) => void>();
  readonly #awaited = new Set<{ readonly peer: string; readonly fail: (error: SandgateError) => void }>();
  readonly #host = hostname();
  #timer: NodeJS.Timeout | undefined;
  #checks: NodeJS.Timeout | undefined;
  #checkedAtMs = Date.now();
  #version = 0;
  #outages = 0;

  /** Listens to the beats of others; its own begin with `start`. */
  constructor(bus: Bus, peer: string, log: Logger) {
    this.peer = peer;
    this.#bus = bus;
    this.#log = log;
    // Workers have nothing to say to each other, and may not hear each other either.
    const heard = subjects.presence(workerOfPeer(peer) === undefined ? ">" : peers.gateway("*"));
    bus.subscribe(heard, ({ subject, data }) => this.#hear(peerOfPresence(subject), data));
    answer(bus, "process", peer, { alive: () => ({}) });
    bus.onLost(() => this.#outages++);
    bus.onRestored(() => {
      this.#grace();
      for (const known of this.#peers.values()) known.outages = undefined;
      this.beat();
    });
  }

  /** Makes this process known. @param describe what each of its beats says */
  start(describe: Describe): void {
    this.#describe = describe;
    this.#timer = every(beatMs, this.#log, "a heartbeat failed", () => this.beat());
    this.#checks = every(checkMs, this.#log, "heartbeats could not be checked", () => this.#check());
    this.beat();
  }

  /** The peers that are there now, this process excluded. */
  *present(): IterableIterator<Presence> {
    for (const { presence } of this.#peers.values()) yield presence;
  }

  /** Changes whenever a peer comes or goes. */
  get version(): number {
    return this.#version;
  }

  has(peer: string): boolean {
    return this.#peers.has(peer);
  }

  /** Whether a peer is a worker that may be on the same machine: one that has its name. */
  isNearbyWorker(peer: string): boolean {
    const { worker, host } = this.#peers.get(peer)?.presence ?? {};
    return worker !== undefined && host === this.#host;
  }

  /** Whether a peer is there and has said nothing for a while. */
  isSilent(peer: string): boolean {
    const known = this.#peers.get(peer);
    return known !== undefined && Date.now() - known.seenAtMs > silentAfterMs;
  }

  /** Has a peer that may have ended, because a connection to it has, asked for before it misses a beat. */
  doubt(peer: string): void {
    const known = this.#peers.get(peer);
    if (known) known.isDoubted = true;
  }

  /** Calls back once for each peer that is new, or back after a silence. */
  onCome(listener: (presence: Presence) => void): void {
    this.#come.add(listener);
  }

  /** Calls back once for each peer that stopped or fell silent. */
  onGone(listener: (peer: string) => void): void {
    this.#gone.add(listener);
  }

  /**
   * Calls back when a peer that stays was away from the bus, which with several servers this process need not have been: what
   * was on the way between the two may be lost.
   */
  onBroken(listener: (peer: string) => void): void {
    this.#broken.add(listener);
  }

  /**
   * Waits for something that a peer does, no longer than the peer is there and connected. What it said before it was gone counts; what
   * it did otherwise is not known.
   *
   * @throws {PeerGone} as soon as the peer is known to be gone.
   */
  async whilePresent<T>(peer: string, action: Promise<T>): Promise<T> {
    const gone = Promise.withResolvers<never>();
    const awaited = { peer, fail: (error: SandgateError): void => void onceRead().then(() => gone.reject(error)) };
    this.#awaited.add(awaited);
    try {
      return await Promise.race([action, gone.promise]);
    } finally {
      this.#awaited.delete(awaited);
    }
  }

  /** Tells the others about this process now instead of at the next beat. */
  beat(): void {
    if (this.#timer) this.#bus.tell(subjects.presence(this.peer), { peer: this.peer, host: this.#host, outages: this.#outages, ...this.#describe?.() });
  }

  /** Tells the others that this process leaves. */
  leave(): void {
    clearInterval(this.#timer);
    clearInterval(this.#checks);
    this.#timer = undefined;
    this.#bus.tell(subjects.presence(this.peer), { peer: this.peer, gone: true });
  }

  /** @param sender as the subject has it: the server lets nobody use another's. */
  #hear(sender: string, data: Uint8Array): void {
    let presence: Presence;
    try {
      presence = spokenBy(sender, checkPresence(decodeJson(data)));
    } catch (error) {
      this.#log.warn({ err: error }, "a heartbeat could not be read");
      return;
    }
    if (presence.peer === this.peer) return;
    if (presence.gone) return this.#drop(presence.peer);
    const known = this.#peers.get(presence.peer);
    const isNew = known === undefined;
    if (isNew && this.#isReplaced(presence)) return;
    this.#peers.set(presence.peer, { presence, outages: presence.outages, seenAtMs: Date.now(), isDoubted: false, isAskedFor: false });
    if (known?.outages !== undefined && known.outages !== presence.outages) this.#break(presence.peer);
    if (!isNew) return;
    this.#version++;
    this.#log.info({ event: "peer_come", peer: presence.peer, worker: presence.worker?.id }, "a peer is there");
    this.#dropPredecessors(presence);
    this.beat();
    for (const listener of this.#come) inBackground(this.#log, "the news of a peer were not taken", () => listener(presence));
  }

  /** Whether another process of the same worker is there that was started later. */
  #isReplaced(presence: Presence): boolean {
    const { epoch } = presence.worker ?? {};
    return epoch !== undefined && this.#othersOf(presence).some(({ worker }) => worker?.epoch !== undefined && worker.epoch > epoch);
  }

  /** A worker that came back under its old id has replaced the process that had it. */
  #dropPredecessors(newcomer: Presence): void {
    for (const { peer } of this.#othersOf(newcomer)) this.#drop(peer);
  }

  /** The other processes of the same worker. */
  #othersOf({ peer, worker }: Presence): Presence[] {
    return worker ? [...this.present()].filter((other) => other.worker?.id === worker.id && other.peer !== peer) : [];
  }

  #check(): void {
    const now = Date.now();
    // If this process was itself stopped or starved, the silence says nothing about the others.
    if (now - this.#checkedAtMs > beatMs) this.#grace();
    this.#checkedAtMs = now;
    if (!this.#bus.connected) return;
    for (const [peer, known] of [...this.#peers]) {
      const isElsewhere = known.presence.host !== undefined && known.presence.host !== this.#host;
      if (now - known.seenAtMs > (isElsewhere ? elsewhereGoneAfterMs : goneAfterMs)) this.#drop(peer);
      else if ((known.isDoubted || now - known.seenAtMs > askAfterMs) && !known.isAskedFor) void this.#askFor(peer, known);
    }
  }

  /** Only that nobody is there says anything: a peer that answers beats again as well. */
  async #askFor(peer: string, known: Known): Promise<void> {
    known.isAskedFor = true;
    known.isDoubted = false;
    try {
      await ask(this.#bus, "alive", peer, {});
    } catch (error) {
      if (error instanceof NoResponder && this.#peers.get(peer) === known) this.#drop(peer);
    } finally {
      known.isAskedFor = false;
    }
  }

  #grace(): void {
    const now = Date.now();
    for (const known of this.#peers.values()) known.seenAtMs = now;
    this.#checkedAtMs = now;
  }

  #break(peer: string): void {
    this.#log.warn({ event: "peer_broken", peer }, "a peer was away from the bus for a moment");
    this.#fail(peer);
    for (const listener of this.#broken) inBackground(this.#log, "the outage of a peer was not taken note of", () => listener(peer));
  }

  /** Nobody waits for the peer any more. */
  #fail(peer: string): void {
    for (const awaited of this.#awaited) if (awaited.peer === peer) awaited.fail(new PeerGone());
  }

  #drop(peer: string): void {
    if (!this.#peers.delete(peer)) return;
    this.#version++;
    this.#log.warn({ event: "peer_gone", peer }, "a peer is gone");
    this.#fail(peer);
    for (const listener of this.#gone) inBackground(this.#log, "the loss of a peer was not taken note of", () => listener(peer));
  }
}

/** @throws {SandgateError} where the heartbeat is in the name of somebody else. */
function spokenBy(sender: string, presence: Presence): Presence {
  const isOwn = presence.peer === sender && presence.worker?.id === (presence.gone ? undefined : workerOfPeer(sender));
  if (!isOwn || (presence.gateway && presence.worker)) throw new SandgateError("internal_error", `a heartbeat of ${sender} claims to be another's`);
  return presence;
}
