/**
 * A pool of containers started in advance: isolated, with a network, an exec server and limits, but without files. Whatever a sandbox
 * is made from, an image or a snapshot, one of them becomes it within a few milliseconds. The pool holds what was asked for most in the
 * last minutes (`Demand`), is filled in the background, never at the expense of a call, and not at all when the host is short.
 */

import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Config } from "../../shared/config.ts";
import { isolationOf, sandboxDefaults } from "../../shared/schemas/sandboxes.ts";
import { inBackground } from "../../shared/util/background.ts";
import { newId } from "../../shared/util/ids.ts";
import type { Logger } from "../../shared/util/log.ts";
import { outsideTrace } from "../../shared/util/trace-context.ts";
import { pause } from "../../shared/waiting.ts";
import type { Counters } from "../counters.ts";
import type { Container } from "../runtime/container/container.ts";
import type { ContainerSpec } from "../runtime/podman/spec.ts";
import { pidNamespaceOf } from "../runtime/process/proc.ts";
import { Demand, type Kind, sameKind, type Wanted } from "./demand.ts";

/** Pause after a container was taken, so that what comes right after it, its first command, has the host to itself. */
const restMs = 30;
/** When creates never rest, the pool still gets one container in such a time. */
const restMsMax = 1_000;
const restPollMs = 10;
const failureRestMs = 10_000;
/** How often it is looked at whether fewer are wanted. */
const lookMs = 10_000;
/** For how long nothing is tried again with an image whose sandboxes cannot come from the pool, and how many such are remembered. */
const unfitMs = 600_000;
const unfitMax = 256;

/** A waiting container, already named after the id of its future sandbox. */
export interface Prepared {
  readonly id: string;
  readonly kind: Kind;
  readonly container: Container;
}

interface Parts {
  readonly config: Config;
  readonly counters: Counters;
  readonly log: Logger;
  /** Starts a container without files. */
  readonly launch: (spec: ContainerSpec) => Promise<Container>;
  /** Removes such a container. */
  readonly remove: (sandboxId: string) => Promise<void>;
  /** Whether containers can be started without files here. */
  readonly isPossible: boolean;
  /** Whether the worker takes creates. */
  readonly isServing: () => boolean;
  /** How many containers the host has room for, those included that wait now. */
  readonly roomFor: (waiting: number) => number;
  /** Whether somebody waits for a container that is being made. */
  readonly isUrgent: () => boolean;
}

export class WarmPool {
  readonly #parts: Parts;
  readonly #demand = new Demand(usual);
  readonly #waiting: Prepared[] = [];
  /** Names of images, and until when they are passed by. */
  readonly #unfit = new Map<string, number>();
  #adjusting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #takenAtMs = 0;
  #stopped = true;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#waiting.length;
  }

  start(): void {
    this.#stopped = false;
    this.#adjustAfter(0);
  }

  /** A waiting container for this call, if the pool holds one of its kind. */
  take(call: Request<"create">): Prepared | undefined {
    const { config, counters } = this.#parts;
    if (config.poolSize === 0 || isolationOf(call) === "strong" || (this.#unfit.get(call.image) ?? 0) > performance.now()) return undefined;
    const kind: Kind = { cpus: call.cpu, memoryMiB: call.memory, network: call.network };
    const isKept = this.#wanted().some((wanted) => sameKind(wanted.kind, kind));
    this.#demand.note(kind, performance.now());
    this.#adjustAfter(restMs);
    for (let prepared = this.#shift(kind); prepared; prepared = this.#shift(kind)) {
      const { initPid, pidNamespace } = prepared.container;
      if (pidNamespaceOf(initPid) === pidNamespace) {
        this.#takenAtMs = performance.now();
        counters.poolHits++;
        return prepared;
      }
      void this.#discard(prepared);
    }
    if (isKept) counters.poolMisses++;
    return undefined;
  }

  /** A container was taken for this image in vain, and so would others be. */
  passBy(image: string): void {
    this.#unfit.delete(image);
    this.#unfit.set(image, performance.now() + unfitMs);
    const [oldest] = this.#unfit.keys();
    if (this.#unfit.size > unfitMax && oldest !== undefined) this.#unfit.delete(oldest);
  }

  /** Removes the waiting containers. Resolves when they are gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#adjusting;
    await this.#discardAll(() => true);
  }

  #shift(kind: Kind): Prepared | undefined {
    const index = this.#waiting.findIndex((prepared) => sameKind(prepared.kind, kind));
    return index < 0 ? undefined : this.#waiting.splice(index, 1)[0];
  }

  #adjustAfter(delayMs: number): void {
    if (this.#stopped || this.#adjusting) return;
    clearTimeout(this.#timer);
    // The call that took a container has nothing to do with the next one.
    outsideTrace(() => {
      this.#timer = setTimeout(() => inBackground(this.#parts.log, "the pool could not be filled", () => this.#adjust()), delayMs);
    });
  }

  async #adjust(): Promise<void> {
    this.#adjusting ??= this.#fit().finally(() => {
      this.#adjusting = undefined;
      // One may have been taken while others were removed.
      this.#adjustAfter(this.#missing() ? restMs : lookMs);
    });
    await this.#adjusting;
  }

  /** Makes what is missing, one at a time, and removes what is too much. Stops at the first failure. */
  async #fit(): Promise<void> {
    const { log } = this.#parts;
    for (let missing = this.#missing(); missing && (await this.#isTurn()); missing = this.#missing()) {
      const id = newId("sandbox");
      const kind = missing;
      try {
        this.#waiting.push({ id, kind, container: await this.#parts.launch({ sandboxId: id, ...kind, isolation: "standard" }) });
      } catch (err) {
        log.warn({ err, event: "pool_failed", ...kind }, "a container could not be prepared");
        this.#demand.forget(kind);
        await this.#rest(failureRestMs);
      }
    }
    for (const { kind, count } of this.#surplus()) {
      const many = this.#waiting.filter((prepared) => sameKind(prepared.kind, kind)).slice(count);
      await this.#discardAll((prepared) => many.includes(prepared));
    }
  }

  #wanted(): Wanted[] {
    const { config, roomFor } = this.#parts;
    // Where all sandboxes must be strong, none would ever be taken.
    if (this.#stopped || config.isolation === "strong" || !this.#parts.isPossible) return [];
    const most = Math.min(Math.max(config.poolSize, config.poolSizeMax), roomFor(this.size));
    return this.#demand.wanted(performance.now(), { least: config.poolSize, most: Math.max(0, most) });
  }

  #missing(): Kind | undefined {
    if (!this.#parts.isServing()) return undefined;
    return this.#wanted().find(({ kind, count }) => this.#countOf(kind) < count)?.kind;
  }

  /** The kinds of which there are more than wanted. */
  #surplus(): Wanted[] {
    const wanted = this.#wanted();
    const kinds = this.#waiting.map(({ kind }) => kind).filter((kind, index, all) => all.findIndex((one) => sameKind(one, kind)) === index);
    const counts = kinds.map((kind) => ({ kind, count: wanted.find((one) => sameKind(one.kind, kind))?.count ?? 0 }));
    return this.#stopped ? [] : counts.filter(({ kind, count }) => this.#countOf(kind) > count);
  }

  #countOf(kind: Kind): number {
    return this.#waiting.filter((prepared) => sameKind(prepared.kind, kind)).length;
  }

  /** Waits until no call does, for a while. @returns whether the pool still goes on */
  async #isTurn(): Promise<boolean> {
    const { isUrgent } = this.#parts;
    const untilMs = performance.now() + restMsMax;
    const isBusy = (): boolean => isUrgent() || performance.now() - this.#takenAtMs < restMs;
    while (!this.#stopped && isBusy() && performance.now() < untilMs) await pause(restPollMs);
    return !this.#stopped;
  }

  /** Ends early when the pool is stopped. */
  async #rest(ms: number): Promise<void> {
    for (const untilMs = performance.now() + ms; !this.#stopped && performance.now() < untilMs; ) await pause(restMsMax / 10);
  }

  async #discardAll(isMeant: (prepared: Prepared) => boolean): Promise<void> {
    const meant = this.#waiting.filter(isMeant);
    for (const prepared of meant) this.#waiting.splice(this.#waiting.indexOf(prepared), 1);
    for (const prepared of meant) await this.#discard(prepared);
  }

  async #discard({ id }: Prepared): Promise<void> {
    await this.#parts.remove(id).catch((err) => this.#parts.log.warn({ err, sandbox: id }, "a prepared container could not be removed"));
  }
}

const usual: Kind = { cpus: sandboxDefaults.cpus, memoryMiB: sandboxDefaults.memoryMiB, network: sandboxDefaults.access };
