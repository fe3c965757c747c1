/**
 * The limit of concurrent sandboxes, exact across all gateways. Before a sandbox is created, its place is reserved with the
 * owner of the key. A reservation ends when its sandbox is in the directory, when the gateway reports that it was not
 * created, or when the gateway that held it is gone.
 */

import { ask, askWithin } from "../../shared/bus/calls.ts";
import type { Asked, Reply, Request } from "../../shared/bus/contract/contract.ts";
import { NoResponder, PeerGone } from "../../shared/bus/failures.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { PeerWatch } from "../../shared/bus/presence.ts";
import { SandgateError } from "../../shared/errors.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { pause } from "../../shared/waiting.ts";
import type { SandboxDirectory } from "../fleet/sandboxes.ts";
import type { KeyState, Ownership } from "./ownership.ts";

/** The right to create one sandbox, or several. */
export interface Reservation {
  /** Of the first place. */
  readonly id: string;
  /** Call it when the sandboxes exist, or certainly never will. Resolves when the places are counted accordingly. */
  settle(): Promise<void>;
}

/** Places that a gateway asks for together. */
interface Wanted {
  readonly ids: readonly string[];
  readonly peer: string;
}

/** How long finding the owner and its answer may take. Covers the seconds until a dead gateway is known to be gone. */
const reserveMs = 10_000;
const hopsAtOnce = 3;
const askAgainMs = 100;
const sweepMs = 1_000;
/** Younger reservations are not checked: their call may still be on its way to the worker. */
const doubtMs = 2_000;

export class Reservations {
  readonly #bus: Bus;
  readonly #peers: PeerWatch;
  readonly #ownership: Ownership;
  readonly #directory: SandboxDirectory;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;

  constructor(bus: Bus, peers: PeerWatch, ownership: Ownership, directory: SandboxDirectory, log: Logger) {
    this.#bus = bus;
    this.#peers = peers;
    this.#ownership = ownership;
    this.#directory = directory;
    this.#log = log;
    this.#timer = every(sweepMs, log, "could not check for abandoned reservations", () => this.#sweep());
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The number of sandboxes of the key that this gateway knows of. */
  used(key: string): number {
    return this.#directory.countOfKey(key);
  }

  /**
   * Reserves a place under an id that the sandbox will carry.
   *
   * @throws {SandgateError} `sandbox_limit_reached`, or `unavailable` when the owner of the key cannot be asked.
   */
  reserve(id: string, key: string, limit: number): Promise<Reservation> {
    return this.reserveAll([id], key, limit);
  }

  /** The same for several places, of which all or none are reserved. @param ids at least one */
  async reserveAll(ids: readonly string[], key: string, limit: number): Promise<Reservation> {
    const held = { key, granted: false };
    for (const id of ids) this.#ownership.held.set(id, held);
    const settle = async (): Promise<void> => void (await Promise.all(ids.map((id) => this.#settle(key, id))));
    try {
      held.granted = await this.#ask(key, ids, limit);
    } finally {
      if (!held.granted) void settle();
    }
    if (!held.granted) throw limitReached(limit, ids.length);
    return { id: ids[0] as string, settle };
  }

  /** Answers a gateway that considers this one the key's owner. */
  async answerReserve({ key, id, more = [], peer, limit }: Request<"reserve">): Promise<Reply<"reserve">> {
    const owner = this.#ownership.ownerOf(key);
    if (owner !== this.#ownership.self && owner !== peer) return { moved_to: owner };
    const granted = await this.#reserveHere(key, { ids: [id, ...more], peer }, limit);
    return granted === undefined ? { moved_to: this.#ownership.ownerOf(key) } : { granted };
  }

  /** Settles a reservation for another gateway. */
  async answerSettle({ key, id }: Request<"settle">): Promise<object> {
    await this.#settleHere(key, id);
    return {};
  }

  /** Whether this gateway is still working on the reservation. */
  holds(id: string): boolean {
    return this.#ownership.held.has(id);
  }

  async #ask(key: string, ids: readonly string[], limit: number): Promise<boolean> {
    const [id = "", ...more] = ids;
    const self = this.#ownership.self;
    let owner = this.#ownership.ownerOf(key);
    const untilMs = performance.now() + reserveMs;
    for (let hop = 0; performance.now() < untilMs; hop++) {
      if (hop >= hopsAtOnce) await pause(askAgainMs);
      if (owner === self) {
        const granted = await this.#reserveHere(key, { ids, peer: self }, limit);
        if (granted !== undefined) return granted;
        owner = this.#ownership.ownerOf(key);
      } else {
        const reply = await this.#askOwner(
          owner,
          { key, id, ...(more.length > 0 ? { more } : {}), peer: self, limit },
          Math.max(1, untilMs - performance.now()),
        );
        if (reply && "granted" in reply) return reply.granted;
        owner = reply?.moved_to ?? this.#ownership.ownerOf(key);
      }
    }
    throw new SandgateError("unavailable", "the gateways are changing places; try again");
  }

  /** Undefined when the owner does not exist or is gone: what it has reserved then no longer counts. */
  async #askOwner(owner: string, question: Asked<"reserve">, timeoutMs: number): Promise<Reply<"reserve"> | undefined> {
    try {
      return await this.#peers.whilePresent(owner, askWithin(this.#bus, "reserve", owner, question, timeoutMs));
    } catch (error) {
      if (error instanceof NoResponder || error instanceof PeerGone) return undefined;
      throw error;
    }
  }

  /** Reserves as the owner; undefined when another gateway has become the owner meanwhile. */
  async #reserveHere(key: string, { ids, peer }: Wanted, limit: number): Promise<boolean | undefined> {
    const state = await this.#ownership.state(key);
    if (state.inherited) {
      await this.#directory.caughtUp();
      state.inherited = false;
    }
    const hasNoRoom = (): boolean => this.#taken(key, state, ids) + ids.length > limit;
    let isFull = hasNoRoom();
    if (isFull) {
      // Recent deletions may not be known here yet.
      await this.#directory.caughtUp();
      isFull = hasNoRoom();
    }
    if (this.#ownership.find(key) !== state) return undefined;
    if (!isFull) for (const id of ids) state.pending.set(id, { id, peer, atMs: performance.now() });
    return !isFull;
  }

  /** The places taken, without these reservations, which may be requested again after a lost reply. */
  #taken(key: string, { pending }: KeyState, asking: readonly string[]): number {
    let count = this.#directory.countOfKey(key);
    for (const id of pending.keys()) if (!asking.includes(id) && !this.#directory.hasReservation(id)) count++;
    return count;
  }

  async #settle(key: string, id: string): Promise<void> {
    this.#ownership.held.delete(id);
    const owner = this.#ownership.ownerOf(key);
    try {
      if (owner === this.#ownership.self) await this.#settleHere(key, id);
      else await ask(this.#bus, "settle", owner, { key, id });
    } catch (err) {
      this.#log.debug({ err }, "could not settle a reservation; its owner will notice that it is abandoned");
    }
  }

  /** Ends a reservation, but only after its sandbox, if any, is in the directory and counted. */
  async #settleHere(key: string, id: string): Promise<void> {
    // Another owner is not asked for its state: it finds out by itself.
    const isOwner = this.#ownership.ownerOf(key) === this.#ownership.self;
    const state = isOwner ? await this.#ownership.state(key) : this.#ownership.find(key);
    if (!state?.pending.has(id)) return;
    try {
      if (!this.#directory.hasReservation(id)) await this.#directory.caughtUp();
      state.pending.delete(id);
    } catch (err) {
      this.#log.debug({ err }, "could not settle a reservation now; the sweep will retry");
    }
  }

  /** Ends abandoned reservations: their gateway died, or its message was lost. */
  async #sweep(): Promise<void> {
    const before = performance.now() - doubtMs;
    for (const [key, { pending }] of this.#ownership.states()) {
      const old = [...pending.values()].filter(({ atMs }) => atMs < before);
      for (const [peer, theirs] of Map.groupBy(old, ({ peer }) => peer)) {
        const ids = theirs.map(({ id }) => id);
        const held = new Set(await this.#stillHeld(peer, ids));
        for (const id of ids) if (!held.has(id)) await this.#settleHere(key, id);
      }
    }
  }

  async #stillHeld(peer: string, ids: string[]): Promise<readonly string[]> {
    if (peer === this.#ownership.self) return ids.filter((id) => this.#ownership.held.has(id));
    if (!this.#ownership.gateways().includes(peer)) return [];
    try {
      return (await ask(this.#bus, "held", peer, { ids })).ids;
    } catch {
      return ids; // The gateway may be busy. If it is gone, missed heartbeats will show it.
    }
  }
}

function limitReached(limit: number, wanted: number): SandgateError {
  const allowed = `this key may have ${limit} sandbox${limit === 1 ? "" : "es"} at the same time`;
  const words = wanted === 1 ? "; delete one first" : `, which leaves no room for ${wanted} more`;
  return new SandgateError("sandbox_limit_reached", allowed + words);
}
