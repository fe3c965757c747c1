/**
 * Moves sandboxes from one worker to another, under their ids. The source holds its copy still (`hold`), the target makes another one
 * that waits (`receive`). Then this gateway writes into the source's entry that the target has the sandbox, in place of the very
 * revision that was held: that one write decides. After it the target is told (`confirm`) and the source removes its copy
 * (`release`); without it the source goes on (`takeBack`). What a gateway leaves undone, the workers and the other gateways end.
 */
import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import { imageOfLayer } from "../../shared/bus/snapshot-layers.ts";
import { SandgateError } from "../../shared/errors.ts";
import { every } from "../../shared/util/background.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import { backoffMs, retry } from "../../shared/waiting.ts";
import type { By } from "../call.ts";
import type { Claims } from "./claims.ts";
import type { Dispatcher } from "./dispatch.ts";
import type { EntryMirror } from "./entries.ts";
import type { WorkerRef } from "./placement.ts";
import type { SnapshotDirectory } from "./snapshots.ts";

const lookMs = 5_000;
/** Workers that are asked to take a sandbox, one after the other. */
const targetsMax = 3;
const confirmations = { firstMs: 200, maxMs: 2_000, count: 20 };

interface Parts {
  readonly sandboxes: EntryMirror<SandboxEntry>;
  readonly snapshots: SnapshotDirectory;
  readonly workers: Dispatcher;
  readonly claims: Claims;
  /** This gateway. */
  readonly peer: string;
  readonly log: Logger;
}

/** What became of a sandbox that has moved. */
export interface Moved extends Pick<Reply<"hold">, "commands" | "sessions">, Pick<SandboxEntry, "memory_restored" | "memory_reason"> {
  readonly from: string;
  readonly to: string;
}

interface Move {
  readonly call: By & { readonly sandbox_id: string; readonly move_id: string };
  readonly source: WorkerRef;
  readonly held: Reply<"hold">;
}

export class Moves {
  readonly #parts: Parts;
  readonly #inProgress = new Set<string>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Whether this gateway carries out the move. */
  holds(id: string): boolean {
    return this.#inProgress.has(id);
  }

  /**
   * Moves a running sandbox to the worker that is best for it, or to the one that is named.
   *
   * @throws {SandgateError} `unavailable` when no other worker has room or one is gone, `conflict` when it does not run; it goes on where it was
   */
  async move(by: By, { id, worker_id }: SandboxEntry, to?: string): Promise<Moved> {
    const { workers, sandboxes, peer } = this.#parts;
    const entry = sandboxes.get(id);
    if (!entry) throw new SandgateError("conflict", "the sandbox was deleted meanwhile");
    const targets = workers.targetsFor(entry, to);
    const source = workers.worker(worker_id);
    const call = { ...by, sandbox_id: id, move_id: newId("move") };
    this.#inProgress.add(call.move_id);
    try {
      const move: Move = { call, source, held: ownOf(source, call, await workers.call(source, "hold", { ...call, peer })) };
      const target = await this.#give(move, targets);
      const entry = await this.#handOver(move, target);
      const { commands, sessions } = move.held;
      const { memory_restored = false, memory_reason } = entry ?? {};
      return { from: source.id, to: target.id, commands, sessions, memory_restored, ...(memory_reason === undefined ? {} : { memory_reason }) };
    } finally {
      this.#inProgress.delete(call.move_id);
    }
  }

  /** Has a worker make a copy and decides that it has the sandbox. @throws {SandgateError} the source goes on then */
  async #give(move: Move, targets: readonly WorkerRef[]): Promise<WorkerRef> {
    let target: WorkerRef | undefined;
    try {
      target = await this.#receivedBy(move, targets);
      if (await this.#decide(move, target)) return target;
      throw takenBack();
    } catch (error) {
      const { workers, log } = this.#parts;
      const { kept } = await workers.call(move.source, "takeBack", move.call).catch((err: unknown) => {
        log.warn({ err, sandbox: move.call.sandbox_id }, "the worker of a sandbox that was not moved finds out by itself");
        return { kept: true };
      });
      // The write had succeeded, and its answer was lost.
      if (!kept && target) return target;
      this.#dropLayers(move);
      throw error;
    }
  }

  async #receivedBy({ call, source, held }: Move, targets: readonly WorkerRef[]): Promise<WorkerRef> {
    const { workers, peer, log } = this.#parts;
    const { sandbox, snapshot, env_vars } = held;
    let failure: unknown;
    for (const target of targets.slice(0, targetsMax)) {
      await this.#address(call, source, target);
      try {
        await workers.call(target, "receive", { ...call, peer, sandbox, snapshot, env_vars });
        return target;
      } catch (err) {
        failure = err;
        log.warn({ err, sandbox: call.sandbox_id, worker: target.id }, "a worker could not take a sandbox");
      }
    }
    throw failure;
  }

  /** Notes who is asked, so that no other worker can have the move given up. @throws {SandgateError} `unavailable`: the source has taken it back */
  async #address({ move_id, sandbox_id }: Move["call"], source: WorkerRef, target: WorkerRef): Promise<void> {
    const addressed = (entry: SandboxEntry): SandboxEntry => (isHeld(entry, move_id) ? { ...entry, move: { ...entry.move, to: target.id } } : entry);
    const entry = await this.#parts.sandboxes.change({ worker_id: source.id, id: sandbox_id }, addressed);
    if (entry?.move?.to !== target.id) throw takenBack();
  }

  /** @returns whether the target has it from now on. When it throws, that is not known */
  async #decide({ call: { move_id, sandbox_id }, source }: Move, target: WorkerRef): Promise<boolean> {
    const { sandboxes } = this.#parts;
    const key = { worker_id: source.id, id: sandbox_id };
    const found = await sandboxes.version(key);
    return found !== undefined && isHeld(found.value, move_id) && sandboxes.replace(key, { ...found.value, moved_to: target.id }, found.revision);
  }

  /** @throws {SandgateError} `unavailable`: it comes later, when both workers are there */
  async #handOver(move: Move, target: WorkerRef): Promise<SandboxEntry | undefined> {
    const { workers, log } = this.#parts;
    const { call, source } = move;
    const failed = (_error: unknown, attempt: number): number | undefined => (attempt < confirmations.count ? backoffMs(attempt, confirmations) : undefined);
    const entry = await retry(async () => this.#confirm(source.id, workers.worker(target.id), call), failed);
    await workers
      .call(source, "release", call)
      .catch((err) => log.warn({ err, sandbox: call.sandbox_id }, "the copy of a sandbox that has moved is removed later"));
    this.#dropLayers(move);
    return entry;
  }

  async #confirm(from: string, target: WorkerRef, call: Move["call"]): Promise<SandboxEntry | undefined> {
    const { workers, sandboxes } = this.#parts;
    const entry = await workers.call(target, "confirm", call).catch(unlessGone);
    if (entry?.id === call.sandbox_id) sandboxes.note(entry);
    await sandboxes.change({ worker_id: from, id: call.sandbox_id }, (entry) => (entry.moved_to === target.id ? { ...entry, handed_over: true } : entry));
    return entry;
  }

  /** Nobody waits for this: what is left is swept, and so are images, which the next sandbox that moves may need as well. */
  #dropLayers({ held, call }: Move): void {
    const { snapshots, log } = this.#parts;
    void snapshots
      .dropLayers(held.snapshot, isNoImage)
      .catch((err) => log.warn({ err, sandbox: call.sandbox_id }, "what a move has left in the object store is removed later"));
  }

  /**
   * Tells a worker with a copy whether the sandbox is its own. If that was open, it is decided now: it is not.
   *
   * @throws {SandgateError} `unavailable` while it is on its way to another worker, or when nothing can be stored
   */
  async settle({ sandbox_id, move_id, from }: Request<"settleMove">, worker: string): Promise<Reply<"settleMove">> {
    const { sandboxes } = this.#parts;
    const key = { worker_id: from, id: sandbox_id };
    for (;;) {
      const found = await sandboxes.version(key);
      if (!found) {
        if (await sandboxes.isMissing(key)) return { is_moved: false };
        throw new SandgateError("unavailable", "the news of the sandbox differ; try again");
      }
      const { value: entry, revision } = found;
      if (entry.moved_to === worker && entry.move?.id === move_id) return { is_moved: true };
      if (isOpen(entry) && entry.move?.to !== worker) throw new SandgateError("unavailable", "the sandbox is on its way to another worker");
      // A server that leads no more may have answered. Only what replaces the entry that was read shows that it is still so.
      const settled = isHeld(entry, move_id) ? { ...entry, move: { ...entry.move, given_up: true as const } } : entry;
      if (await sandboxes.replace(key, settled, revision)) return { is_moved: false };
    }
  }

  /** Ends what others have left undone, at intervals. @param isMine whether this gateway is the one that does. @returns stops it */
  watch(isMine: () => boolean): () => void {
    let isBusy = false;
    const timer = every(lookMs, this.#parts.log, "moves of sandboxes could not be ended", async () => {
      if (isBusy || !isMine()) return;
      isBusy = true;
      await this.#finishAll().finally(() => {
        isBusy = false;
      });
    });
    return () => clearInterval(timer);
  }

  async #finishAll(): Promise<void> {
    const { sandboxes, log } = this.#parts;
    for (const entry of sandboxes.given())
      await this.#finish(entry).catch((err) => log.warn({ err, sandbox: entry.id }, "the move of a sandbox could not be ended yet"));
  }

  async #finish(entry: SandboxEntry): Promise<void> {
    const { workers, claims, sandboxes } = this.#parts;
    const { id, worker_id: from, account_id, moved_to: to = "", move } = entry;
    const call = { request_id: newId("request"), account_id, sandbox_id: id, move_id: move?.id ?? "" };
    if (!entry.handed_over) {
      // With its worker, the sandbox was given up.
      if (await claims.isGone(to)) await sandboxes.change(entry, (now) => ({ ...now, handed_over: true }));
      else if (workers.has(to)) await this.#confirm(from, workers.worker(to), call);
      else return;
    }
    if (await claims.isGone(from)) await sandboxes.delete(entry);
    else if (workers.has(from)) await workers.call(workers.worker(from), "release", call);
  }
}

/** It was confirmed before, and has been deleted since. */
function unlessGone(error: unknown): undefined {
  if (!(error instanceof SandgateError) || error.code !== "not_found") throw error;
}

/** Checks that a worker speaks of its own: what it names, another one would fetch. @throws {SandgateError} `internal_error` otherwise */
function ownOf({ id }: WorkerRef, { sandbox_id, account_id }: Move["call"], held: Reply<"hold">): Reply<"hold"> {
  const { sandbox, snapshot } = held;
  if (sandbox.id === sandbox_id && [sandbox, snapshot].every((one) => one.worker_id === id && one.account_id === account_id)) return held;
  throw new SandgateError("internal_error", "the reply of a worker was not its own", { cause: new Error(`worker ${id} holds what is not its own`) });
}

const isNoImage = (layerId: string): boolean => imageOfLayer(layerId) === undefined;

const takenBack = (): SandgateError => new SandgateError("unavailable", "the worker of the sandbox has taken it back; try again");

/** Whether a sandbox is on its way, and another worker may still get it. */
const isOpen = ({ status, move, moved_to }: SandboxEntry): boolean => status === "moving" && moved_to === undefined && !move?.given_up;

/** Whether a sandbox is still held for a move. */
const isHeld = (entry: SandboxEntry, moveId: string): entry is SandboxEntry & { readonly move: NonNullable<SandboxEntry["move"]> } =>
  isOpen(entry) && entry.move?.id === moveId;
