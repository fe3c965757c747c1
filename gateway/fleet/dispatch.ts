/** Calls to workers: which worker, how long, and what it means when it is gone. Nothing is ever sent twice. */

import type { WorkerPresence } from "../../shared/bus/messages.ts";
import { type Bus, NoResponder } from "../../shared/bus/nats.ts";
import { PeerGone, type PeerWatch } from "../../shared/bus/presence.ts";
import { subjects, type WorkerVerb } from "../../shared/bus/subjects.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Check } from "../../shared/schemas/validate.ts";
import { rankWorkers } from "./placement.ts";

export interface WorkerRef {
  readonly id: string;
  /** The worker's process, to which streams belong. */
  readonly peer: string;
}

export class Dispatcher {
  readonly #bus: Bus;
  readonly #peers: PeerWatch;

  constructor(bus: Bus, peers: PeerWatch) {
    this.#bus = bus;
    this.#peers = peers;
  }

  /** Whether a worker is there. */
  has(id: string): boolean {
    return this.workers().some(({ worker }) => worker.id === id);
  }

  /** The workers that are there now. One that has fallen silent accepts nothing new. */
  workers(): { peer: string; worker: WorkerPresence }[] {
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
   * Asks one worker and waits for its reply.
   *
   * @throws {SandgateError} the worker's own error, or `unavailable` as soon as the worker or the bus is gone.
   */
  call<T>(worker: WorkerRef, verb: WorkerVerb, body: object, check: Check<T>, timeoutMs: number): Promise<T> {
    const asked = this.#bus.call(subjects.worker(worker.id, verb), body, (reply) => spokenFor(worker, body, check(reply)), timeoutMs);
    return this.#peers.whilePresent(worker.peer, asked);
  }

  /** Asks the best worker for a new sandbox. @throws {SandgateError} `unavailable` when none has room. */
  async place<T>(body: object, check: Check<T>, timeoutMs: number): Promise<T> {
    const candidates = rankWorkers(this.workers());
    if (candidates.length === 0) throw new SandgateError("unavailable", "no worker has room for another sandbox");
    return this.askFirst(candidates, "create", body, check, timeoutMs);
  }

  /** Asks the first of some workers; the next one only where the one before was certainly never reached. */
  async askFirst<T>(candidates: readonly WorkerRef[], verb: WorkerVerb, body: object, check: Check<T>, timeoutMs: number): Promise<T> {
    let unreached: unknown = new SandgateError("unavailable", "no worker is there");
    for (const candidate of candidates) {
      try {
        return await this.call(candidate, verb, body, check, timeoutMs);
      } catch (error) {
        if (!(error instanceof NoResponder)) throw error;
        unreached = error;
      }
    }
    throw unreached;
  }
}

/** A worker speaks of what is its own, and of the account that asks. @throws {Error} where it does not. */
function spokenFor<T>(worker: WorkerRef, asked: { readonly account_id?: string }, reply: T): T {
  const said = reply as { readonly worker_id?: string; readonly account_id?: string };
  const isOwn = said.worker_id === undefined || said.worker_id === worker.id;
  if (!isOwn || (said.account_id !== undefined && said.account_id !== asked.account_id)) throw new Error(`worker ${worker.id} speaks of what is not its own`);
  return reply;
}
