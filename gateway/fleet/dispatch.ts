/** Calls to workers: which worker, how long, and what it means when it is gone. Nothing is ever sent twice. */

import { askWithin } from "../../shared/bus/calls.ts";
import { type Asked, type Reply, timeoutOf, type WorkerVerb } from "../../shared/bus/contract/contract.ts";
import type { TimeSettings } from "../../shared/bus/contract/declared.ts";
import { NoResponder, PeerGone } from "../../shared/bus/failures.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { PeerWatch } from "../../shared/bus/presence.ts";
import { SandgateError } from "../../shared/errors.ts";
import { type PresentWorker, rankWorkers, type WorkerRef } from "./placement.ts";

export class Dispatcher {
  readonly #bus: Bus;
  readonly #peers: PeerWatch;
  readonly #settings: TimeSettings;

  constructor(bus: Bus, peers: PeerWatch, settings: TimeSettings) {
    this.#bus = bus;
    this.#peers = peers;
    this.#settings = settings;
  }

  /** Whether a worker is there. */
  has(id: string): boolean {
    return this.workers().some(({ worker }) => worker.id === id);
  }

  /** The workers that are there now. One that has fallen silent accepts nothing new. */
  workers(): PresentWorker[] {
    return [...this.#peers.present()].flatMap(({ peer, worker }) => {
      if (!worker) return [];
      return [{ peer, worker: this.#peers.isSilent(peer) ? { ...worker, accepts: false } : worker }];
    });
  }

  /** @throws {SandgateError} `unavailable` when the worker is not there. */
  worker(id: string): WorkerRef {
    const found = this.workers().find(({ worker }) => worker.id === id);
    if (!found) throw new PeerGone();
    return { id, peer: found.peer };
  }

  /**
   * Asks one worker and waits for its reply, as long as the contract says.
   *
   * @throws {SandgateError} the worker's own error, or `unavailable` as soon as the worker or the bus is gone.
   */
  async call<V extends WorkerVerb>(worker: WorkerRef, verb: V, request: Asked<V>): Promise<Reply<V>> {
    const reply = await this.#peers.whilePresent(worker.peer, askWithin(this.#bus, verb, worker.id, request, this.timeoutOf(verb)));
    return spokenFor(worker, request, reply);
  }

  /** Asks the best worker for a new sandbox. @throws {SandgateError} `unavailable` when none has room. */
  async place(request: Asked<"create">): Promise<Reply<"create">> {
    const candidates = rankWorkers(this.workers());
    if (candidates.length === 0) throw new SandgateError("unavailable", "no worker has room for another sandbox");
    return this.askFirst(candidates, "create", request);
  }

  /** Asks the first of some workers; the next one only where the one before was certainly never reached. */
  async askFirst<V extends WorkerVerb>(candidates: readonly WorkerRef[], verb: V, request: Asked<V>): Promise<Reply<V>> {
    let unreached: unknown = new SandgateError("unavailable", "no worker is there");
    for (const candidate of candidates) {
      try {
        return await this.call(candidate, verb, request);
      } catch (error) {
        if (!(error instanceof NoResponder)) throw error;
        unreached = error;
      }
    }
    throw unreached;
  }

  /** How long an answer is waited for, in milliseconds. */
  timeoutOf(verb: WorkerVerb): number {
    return timeoutOf(verb, this.#settings);
  }
}

/** A worker speaks of what is its own, and of the account that asks. @throws {SandgateError} `internal_error` where it does not. */
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
