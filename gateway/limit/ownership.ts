/**
 * Which gateway counts for a key, and what it has counted. Every key has one owner among the live gateways, found by
 * rendezvous hashing, so that all agree without communication and few keys move when a gateway joins or leaves. A new
 * owner asks the others for what they have counted. A gateway that leaves, or that learns of a new owner, sends its counts
 * unasked, so that nothing is lost when gateways learn of each other late. Only the counts of a gateway that dies are lost.
 */
import { hash } from "node:crypto";
import { ask, tell } from "../../shared/bus/calls.ts";
import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Counted } from "../../shared/bus/contract/gateways.ts";
import { inTime } from "../../shared/bus/failures.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { PeerWatch } from "../../shared/bus/presence.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { SingleFlight } from "../../shared/util/mutex.ts";
import { TokenBucket } from "./bucket.ts";
import { Shares } from "./shares.ts";

/** A reservation whose sandbox does not exist yet. */
export interface Pending {
  readonly id: string;
  /** The gateway that is creating the sandbox. */
  readonly peer: string;
  readonly atMs: number;
}

/** The counts of a key's owner. */
export interface KeyState {
  readonly bucket: TokenBucket;
  readonly pending: Map<string, Pending>;
  /** Whether other gateways counted before, so that there may be sandboxes not yet known here. */
  inherited: boolean;
  usedAtMs: number;
}

/** How long callers of a key wait for the counts of other gateways. Later replies are added when they arrive. */
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
  /** The reservations that this gateway has requested, by id. Those not granted take up no place yet. */
  readonly held = new Map<string, { readonly key: string; granted: boolean }>();
  /** What this gateway has admitted without reaching the owners of keys. */
  readonly shares = new Shares();
  readonly #timer: NodeJS.Timeout;

  constructor(bus: Bus, peers: PeerWatch, log: Logger) {
    this.#bus = bus;
    this.#peers = peers;
    this.#log = log;
    this.#timer = every(sweepMs, log, "could not drop idle limits", () => this.#sweep()).unref();
    peers.onCome(({ gateway }) => gateway && this.#passOn());
    peers.onGone(() => this.#passOn());
  }

  get self(): string {
    return this.#peers.peer;
  }

  /** The live gateways, including this one unless it is leaving. */
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

  /** The counts of a key that this gateway owns: from memory, or requested from the others once. */
  state(key: string): KeyState | Promise<KeyState> {
    const known = this.#states.get(key);
    if (known) {
      known.usedAtMs = performance.now();
      return known;
    }
    if (this.gateways().length === 1) return this.#keep(key, []);
    return this.#takeovers.run(key, () => this.#takeOver(key));
  }

  /** The counts of a key in memory, if any. */
  find(key: string): KeyState | undefined {
    return this.#states.get(key);
  }

  /** The counts of all keys in memory. */
  states(): IterableIterator<[string, KeyState]> {
    return this.#states.entries();
  }

  /** Hands over the counts of a key to its new owner. */
  handOver(key: string): Counted {
    return this.#giveAway(key);
  }

  /** Adds the counts of another gateway. */
  adopt({ key, state }: Request<"adopt">): void {
    this.#keep(key, [state]);
  }

  /** Sends all counts to their next owners. Must be called before this gateway announces that it leaves. */
  leave(): void {
    this.#leaving = true;
    this.#owners.clear();
    clearInterval(this.#timer);
    this.#passOn();
    this.#states.clear();
  }

  async #takeOver(key: string): Promise<KeyState> {
    const others = this.gateways().filter((peer) => peer !== this.self);
    const told = await Promise.all(others.map((peer) => this.#askWhatWasCounted(peer, key)));
    // Other gateways may have joined meanwhile. Callers that wait for this state count in it first.
    if (this.ownerOf(key) !== this.self) setImmediate(() => this.#passOn());
    return this.#keep(
      key,
      told.filter((state) => state !== undefined),
    );
  }

  /** Requests a gateway's counts, which it drops when it replies. */
  async #askWhatWasCounted(peer: string, key: string): Promise<Counted | undefined> {
    let isLate = false;
    const asked = ask(this.#bus, "takeover", peer, { key }).then(
      (state) => {
        if (!isLate) return state;
        this.#keep(key, [state]);
        this.#passOn();
      },
      (err) => this.#log.debug({ err, peer }, "a gateway did not report its counts"),
    );
    const told = await inTime(asked, takeoverMs).catch(() => undefined);
    isLate = told === undefined;
    return told ?? undefined;
  }

  /** Merges the counts of others, and what this gateway admitted before it was the owner, into the local state. */
  #keep(key: string, told: readonly Counted[]): KeyState {
    const now = performance.now();
    const known = this.#states.get(key);
    const state = known ?? { bucket: new TokenBucket(), pending: new Map(), inherited: true, usedAtMs: now };
    const own = known ? [] : [this.#giveAway(key)];
    for (const { spent, burst, pending } of [...own, ...told]) {
      state.bucket.import(spent, now, burst);
      for (const { id, peer } of pending) state.pending.set(id, { id, peer, atMs: now });
    }
    if (told.length > 0) state.inherited = true;
    this.#states.set(key, state);
    return state;
  }

  /** Returns and drops the counts of a key. */
  #giveAway(key: string): Counted {
    const now = performance.now();
    const state = this.#states.get(key);
    this.#states.delete(key);
    const spent = [...(state?.bucket.export(now) ?? []), ...this.shares.tell(key)];
    const burst = state?.bucket.exportBurst(now);
    const held = [...this.held].flatMap(([id, place]) => (place.key === key && place.granted ? [{ id, peer: this.self }] : []));
    const pending = [...[...(state?.pending.values() ?? [])].map(({ id, peer }) => ({ id, peer })), ...held];
    return { spent, ...(burst ? { burst } : {}), pending };
  }

  /** Sends the counts of keys that this gateway does not own (any more) to their owners. */
  #passOn(): void {
    for (const key of [...this.#states.keys()]) {
      const owner = this.ownerOf(key);
      if (owner === this.self || !this.#bus.connected) continue;
      tell(this.#bus, "adopt", owner, { key, state: this.#giveAway(key) });
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const [key, { bucket, pending, usedAtMs }] of this.#states) {
      if (now - usedAtMs > idleMs && pending.size === 0 && bucket.isFull(now)) this.#states.delete(key);
    }
  }
}

/** The peer with the highest hash of itself and the key. */
export function rendezvous(key: string, peers: readonly string[]): string {
  let best = "";
  let bestScore = "";
  for (const peer of peers) {
    const score = hash("sha1", `${peer} ${key}`, "hex");
    if (score > bestScore) [best, bestScore] = [peer, score];
  }
  return best;
}
