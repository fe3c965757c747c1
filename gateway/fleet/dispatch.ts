/** Calls to workers: choice of worker, timeouts, and errors when a worker is gone. A call is never carried out twice. */

import { askWithin } from "../../shared/bus/calls.ts";
import { type Asked, type Reply, timeoutOf, type WorkerVerb } from "../../shared/bus/contract/contract.ts";
import type { TimeSettings } from "../../shared/bus/contract/declared.ts";
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { NoResponder, PeerGone } from "../../shared/bus/failures.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { PeerWatch } from "../../shared/bus/presence.ts";
import { SandgateError } from "../../shared/errors.ts";
import { isolationOf } from "../../shared/schemas/sandboxes.ts";
import { attempt } from "../../shared/util/attempt.ts";
import type { LocalImages } from "../../shared/util/image.ts";
import type { Claims } from "./claims.ts";
import {
  ableOf,
  imageWanted,
  Placements,
  type PresentWorker,
  type Restorable,
  rankWorkers,
  refOf,
  type Wanted,
  type WorkerRef,
  workersFor,
} from "./placement.ts";

const bytesPerMiB = 1024 ** 2;

export class Dispatcher {
  readonly #bus: Bus;
  readonly #peers: PeerWatch;
  readonly #claims: Claims;
  readonly #settings: TimeSettings & LocalImages;
  readonly #placements = new Placements();

  constructor(bus: Bus, peers: PeerWatch, claims: Claims, settings: TimeSettings & LocalImages) {
    this.#bus = bus;
    this.#peers = peers;
    this.#claims = claims;
    this.#settings = settings;
  }

  /** Whether the worker is present. */
  has(id: string): boolean {
    return this.workers().some(({ worker }) => worker.id === id);
  }

  /** The present workers, without processes that were replaced or forgotten. One that has fallen silent is marked as accepting nothing new. */
  workers(): PresentWorker[] {
    return [...this.#peers.present()].flatMap(({ peer, worker }) => {
      if (!worker || !this.#claims.admits(worker)) return [];
      return [{ peer, worker: this.#peers.isSilent(peer) ? { ...worker, accepts: false } : worker }];
    });
  }

  /** @throws {SandgateError} `unavailable` when the worker is not present. */
  worker(id: string): WorkerRef {
    const found = this.workers().find(({ worker }) => worker.id === id);
    if (!found) throw new PeerGone();
    return refOf(found);
  }

  /**
   * Calls one worker and waits for its reply, for as long as the contract allows.
   *
   * @throws {SandgateError} the worker's error, or `unavailable` as soon as the worker or the bus is gone.
   */
  async call<V extends WorkerVerb>(worker: WorkerRef, verb: V, request: Asked<V>): Promise<Reply<V>> {
    const reply = await this.#peers.whilePresent(worker.peer, askWithin(this.#bus, verb, worker.name, request, this.timeoutOf(verb)));
    return spokenFor(worker, request, reply);
  }

  /** Asks the best worker for a new sandbox. @throws {SandgateError} `unavailable` when none has room, `unprocessable` when none can isolate it so. */
  async place(request: Asked<"create">): Promise<Reply<"create">> {
    const wanted = this.#wanted(request, request.image);
    const candidates = rankWorkers(ableOf(this.workers(), isolationOf(request)), wanted, this.#placements);
    if (candidates.length === 0) throw new SandgateError("unavailable", "no worker has room for another sandbox");
    return this.#askFirst(candidates, wanted, "create", request);
  }

  /**
   * Asks the best worker for a new sandbox from a snapshot.
   *
   * @throws {SandgateError} `unavailable` with the reason when there is none that can, `unprocessable` when none can isolate it so
   */
  async placeRestored(snapshot: Restorable, request: Asked<"restore">): Promise<Reply<"restore">> {
    const wanted = this.#wanted(request, request.image ?? request.manifest.image);
    const candidates = workersFor(snapshot, ableOf(this.workers(), isolationOf(request)), wanted, this.#placements);
    return this.#askFirst(candidates, wanted, "restore", request);
  }

  /** Workers that could take a sandbox from its own, best first; only one where it is named. @throws {SandgateError} `unavailable` when there is none, `unprocessable` */
  targetsFor(entry: SandboxEntry, only?: string): WorkerRef[] {
    const others = this.workers().filter(({ worker: { id } }) => id !== entry.worker_id && (only === undefined || id === only));
    if (others.length === 0) throw new SandgateError("unavailable", "there is no other worker that it could be moved to");
    const wanted = this.#wanted({ memory: entry.memory, reservation_id: entry.id }, entry.image);
    const ranked = rankWorkers(ableOf(others, isolationOf(entry)), wanted, this.#placements);
    if (ranked.length === 0) throw new SandgateError("unavailable", "no other worker has room for another sandbox");
    return ranked.map(refOf);
  }

  #wanted({ memory, reservation_id = "" }: Pick<Asked<"create">, "memory" | "reservation_id">, image: string): Wanted {
    // The image of a snapshot need not be allowed any more.
    return { memoryBytes: memory * bytesPerMiB, image: attempt(() => imageWanted(image, this.#settings)), seed: reservation_id };
  }

  /** Calls the first candidate. Tries the next one only if the previous one has certainly done nothing. @throws {SandgateError} the last refusal */
  async #askFirst<V extends "create" | "restore">(candidates: readonly PresentWorker[], wanted: Wanted, verb: V, request: Asked<V>): Promise<Reply<V>> {
    let refusal: unknown = new SandgateError("unavailable", "no worker is there");
    for (const candidate of candidates) {
      try {
        this.#placements.note(candidate.worker, wanted);
        return await this.call(refOf(candidate), verb, request);
      } catch (error) {
        if (!(error instanceof NoResponder) && !(error instanceof SandgateError && error.isRefusal)) throw error;
        refusal = error;
      }
    }
    throw refusal;
  }

  /** How long to wait for a reply, in milliseconds. */
  timeoutOf(verb: WorkerVerb): number {
    return timeoutOf(verb, this.#settings);
  }
}

/** Checks that a reply concerns the worker itself and the calling account. @throws {SandgateError} `internal_error` otherwise. */
function spokenFor<T>(worker: WorkerRef, asked: object, reply: T): T {
  const { account_id } = asked as { readonly account_id?: string };
  const said = reply as { readonly worker_id?: string; readonly account_id?: string };
  const isOwn = said.worker_id === undefined || said.worker_id === worker.id;
  if (!isOwn || (said.account_id !== undefined && said.account_id !== account_id))
    throw new SandgateError("internal_error", "the reply of a worker was not its own", {
      cause: new Error(`worker ${worker.id} speaks of what is not its own`),
    });
  return reply;
}
