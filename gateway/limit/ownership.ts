/**
 * Which gateway counts for a key, and what it has counted. Every key has one owner among the live gateways, found by
 * rendezvous hashing, so that all agree without asking and few keys move when a gateway comes or goes. A gateway that
 * becomes the owner of a key asks the others what they know of it; one that leaves tells the next owner by itself.
 * Only what a gateway that died had counted is forgotten.
 */
import { hash } from "node:crypto";
import type { Logger } from "../../shared/log.ts";
import { SingleFlight } from "../../shared/mutex.ts";
import { type Bus, encodeJson } from "../../shared/nats.ts";
import type { PeerWatch } from "../../shared/presence.ts";
import { subjects } from "../../shared/subjects.ts";
import { TokenBucket } from "./bucket.ts";
import { checkAdopt, checkState, checkTakeover, type State } from "./messages.ts";

/** A reservation that has not become a sandbox yet. */
export interface Pending {
  readonly id: string;
  /** The gateway that makes the sandbox. */
  readonly peer: string;
  readonly atMs: number;
}

/** What the owner of a key has counted. */
export interface KeyState {
  readonly bucket: TokenBucket;
  readonly pending: Map<string, Pending>;
  usedAtMs: number;
}

const takeoverMs = 500;
const sweepMs = 60_000;
const idleMs = 600_000;
const ownersMax = 100_000;

export class Ownership {
  readonly #bus: Bus;
  readonly #peers: PeerWatch;
  readonly #log: Logger;
  readonly #states = new Map<string, KeyState>();
  readonly #takeovers = new SingleFlight<KeyState>();
  readonly #owners = new Map<string, string>();
  #ownersVersion = -1;
  #leaving = false;
  /** Reservations of a key that this gateway is making sandboxes for. */
  heldOf: (key: string) => readonly string[] = () => [];
  readonly #timer = setInterval(() => this.#sweep(), sweepMs);

  constructor(bus: Bus, peers: PeerWatch, log: Logger) {
    this.#bus = bus;
    this.#peers = peers;
    this.#log = log;
    this.#timer.unref();
  }

  get self(): string {
    return this.#peers.peer;
  }

  /** The live gateways, this one included unless it is leaving. */
  gateways(): string[] {
    const others = [...this.#peers.present()].flatMap(({ peer, gateway }) => (gateway ? [peer] : []));
    return this.#leaving && others.length > 0 ? others : [...others, this.self];
  }

  ownerOf(key: string): string {
    if (this.#ownersVersion !== this.#peers.version || this.#owners.size > ownersMax) {
      this.#owners.clear();
      this.#ownersVersion = this.#peers.version;
    }
    let owner = this.#owners.get(key);
    if (owner === undefined) {
      owner = rendezvous(key, this.gateways());
      this.#owners.set(key, owner);
    }
    return owner;
  }

  /** What has been counted for a key that this gateway owns; from memory, or asked of the others once. */
  state(key: string): KeyState | Promise<KeyState> {
    const known = this.#states.get(key);
    if (known) {
      known.usedAtMs = performance.now();
      return known;
    }
    if (this.gateways().length === 1) return this.#keep(key, []);
    return this.#takeovers.run(key, () => this.#takeOver(key));
  }

  /** All states, for those who watch over reservations. */
  states(): IterableIterator<[string, KeyState]> {
    return this.#states.entries();
  }

  /** Gives away what was counted for a key, because another gateway owns it now. */
  handOver(body: unknown): State {
    const { key } = checkTakeover(body);
    const state = this.#states.get(key);
    this.#states.delete(key);
    const held = this.heldOf(key).map((id) => ({ id, peer: this.self }));
    return { spent: exported(state), pending: [...(state?.pending.values() ?? []), ...held].map(({ id, peer }) => ({ id, peer })) };
  }

  /** Goes on with what a leaving gateway has counted. */
  adopt(body: unknown): void {
    const { key, state } = checkAdopt(body);
    this.#keep(key, [state]);
  }

  /** Tells the next owners what was counted here. To be called before the others hear that this gateway leaves. */
  leave(): void {
    this.#leaving = true;
    this.#owners.clear();
    clearInterval(this.#timer);
    for (const [key, state] of this.#states) {
      const next = this.ownerOf(key);
      if (next === this.self || !this.#bus.connected) continue;
      const pending = [...state.pending.values()].map(({ id, peer }) => ({ id, peer }));
      this.#bus.publish(subjects.gateway(next, "adopt"), encodeJson({ key, state: { spent: exported(state), pending } }));
    }
    this.#states.clear();
  }

  async #takeOver(key: string): Promise<KeyState> {
    const others = this.gateways().filter((peer) => peer !== this.self);
    const told = await Promise.all(
      others.map((peer) =>
        this.#bus.call(subjects.gateway(peer, "takeover"), { key }, checkState, takeoverMs).catch((err) => {
          this.#log.debug({ err, peer }, "a gateway did not say what it had counted");
          return undefined;
        }),
      ),
    );
    return this.#keep(
      key,
      told.filter((state) => state !== undefined),
    );
  }

  /** Adds what others have counted to what is counted here. */
  #keep(key: string, told: readonly State[]): KeyState {
    const now = performance.now();
    const state = this.#states.get(key) ?? { bucket: new TokenBucket(), pending: new Map(), usedAtMs: now };
    for (const { spent, pending } of told) {
      if (spent.length > 0) state.bucket.import(spent as [number, number][], now);
      for (const { id, peer } of pending) state.pending.set(id, { id, peer, atMs: now });
    }
    this.#states.set(key, state);
    return state;
  }

  #sweep(): void {
    const now = performance.now();
    for (const [key, { bucket, pending, usedAtMs }] of this.#states) {
      if (now - usedAtMs > idleMs && pending.size === 0 && bucket.isFull(now)) this.#states.delete(key);
    }
  }
}

const exported = (state: KeyState | undefined): State["spent"] => (state?.bucket.export(performance.now()) ?? []).map(([inMs, count]) => [inMs, count]);

/** The peer with the highest hash of itself and the key. */
function rendezvous(key: string, peers: readonly string[]): string {
  let best = "";
  let bestScore = "";
  for (const peer of peers) {
    const score = hash("sha1", `${peer} ${key}`, "hex");
    if (score > bestScore) [best, bestScore] = [peer, score];
  }
  return best;
}
