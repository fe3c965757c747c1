/**
 * A pool of containers started in advance: isolated, with a network, an exec server and limits. Most have the files of an image already,
 * the one that the last creates asked for. Whatever a sandbox is made from, an image or a snapshot, those without files, or with those of
 * the default image, become it as well, and get their files within a few milliseconds. The pool holds what was asked for most in the
 * last minutes (`Demand`), is filled in the background, never at the expense of a call, and not at all when the host is short.
 */

import type { Request } from "../../shared/bus/contract/contract.ts";
import type { Config } from "../../shared/config.ts";
import { isolationOf, sandboxDefaults } from "../../shared/schemas/sandboxes.ts";
import { inBackground } from "../../shared/util/background.ts";
import { newId } from "../../shared/util/ids.ts";
import { defaultImageWord } from "../../shared/util/image.ts";
import type { Logger } from "../../shared/util/log.ts";
import { outsideTrace } from "../../shared/util/trace-context.ts";
import { pause } from "../../shared/waiting.ts";
import type { Counters } from "../counters.ts";
import { type Container, isThere } from "../runtime/container/container.ts";
import type { ContainerSpec } from "../runtime/podman/spec.ts";
import { Demand, type Kind, sameKind, type Wanted } from "./demand.ts";
import type { Launched, Waiting } from "./launcher.ts";

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
export interface Prepared extends Waiting {
  readonly id: string;
  readonly kind: Kind;
  /** Whose files it has, or is being given. */
  readonly image?: string;
}

interface Parts {
  readonly config: Config;
  readonly counters: Counters;
  readonly log: Logger;
  /** Starts a container without files. */
  readonly launch: (spec: ContainerSpec) => Promise<Container>;
  /** Gives it the files of an image; undefined where it cannot have them, and nothing of it is left then. */
  readonly furnish: (container: Container, spec: ContainerSpec, image: string) => Promise<Launched | undefined>;
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
  readonly #demand = new Demand({ kind: usual, image: defaultImageWord });
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

  /** A waiting container for this call, if the pool holds one of its kind. @param image that its files are; undefined for others */
  take(call: Request<"create">, image: string | undefined): Prepared | undefined {
    const { config, counters } = this.#parts;
    if (config.poolSize === 0 || isolationOf(call) === "strong" || this.#isUnfit(call.image)) return undefined;
    const kind: Kind = { cpus: call.cpu, memoryMiB: call.memory, network: call.network };
    const isKept = this.#wanted().some((wanted) => sameKind(wanted.kind, kind));
    this.#demand.note(kind, image, performance.now());
    this.#adjustAfter(restMs);
    for (let prepared = this.#shift(kind, image); prepared; prepared = this.#shift(kind, image)) {
      if (isThere(prepared.container)) {
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

  /** Gives up all that has files of an image which could be removed otherwise. Until such an image is asked for again, none has. */
  async letGo(): Promise<void> {
    this.#demand.forgetImages();
    await this.#discardAll(({ image }) => image !== undefined && image !== defaultImageWord);
    this.#adjustAfter(restMs);
  }

  /** Removes the waiting containers. Resolves when they are gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#adjusting;
    await this.#discardAll(() => true);
  }

  #isUnfit(image: string): boolean {
    return (this.#unfit.get(image) ?? 0) > performance.now();
  }

  /** With these files, or without any, or with those of the default image. What an account's image was the root of becomes nothing else. */
  #shift(kind: Kind, image: string | undefined): Prepared | undefined {
    const those = this.#those(kind);
    const find = (files: string | undefined): Prepared | undefined => those.find((prepared) => prepared.image === files);
    const best = (image === undefined ? undefined : find(image)) ?? find(undefined) ?? find(defaultImageWord);
    return best && this.#waiting.splice(this.#waiting.indexOf(best), 1)[0];
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

  /** Makes what is missing, one at a time, and removes what is too much. */
  async #fit(): Promise<void> {
    // Looked at again when it is its turn: what was to get files may have been taken meanwhile.
    while (this.#next() && (await this.#isTurn())) await this.#next()?.();
    for (const { kind, count } of this.#surplus()) {
      const many = this.#those(kind).slice(count);
      await this.#discardAll((prepared) => many.includes(prepared));
    }
    const useless = this.#stopped ? undefined : this.#useless();
    await this.#discardAll((prepared) => prepared === useless);
  }

  async #launch(kind: Kind): Promise<void> {
    const id = newId("sandbox");
    try {
      this.#waiting.push({ id, kind, container: await this.#parts.launch(specOf(id, kind)) });
    } catch (err) {
      await this.#failed(kind, err);
    }
  }

  /** Whoever takes it meanwhile waits for its files. */
  async #furnish({ id, kind, container }: Prepared, image: string): Promise<void> {
    const furnishing = this.#parts.furnish(container, specOf(id, kind), image);
    const indexOf = (): number => this.#waiting.findIndex((prepared) => prepared.id === id);
    this.#waiting[indexOf()] = { id, kind, container, image, furnished: furnishing.catch(() => undefined) };
    const forget = (): void => void (indexOf() >= 0 && this.#waiting.splice(indexOf(), 1));
    try {
      if (await furnishing) return;
      forget();
      this.passBy(image);
    } catch (err) {
      forget();
      await this.#failed(kind, err);
    }
  }

  async #failed(kind: Kind, err: unknown): Promise<void> {
    this.#parts.log.warn({ err, event: "pool_failed", ...kind }, "a container could not be prepared");
    this.#demand.forget(kind);
    await this.#rest(failureRestMs);
  }

  /** What is to be made next: files for a container that has none, or else a container. */
  #next(): (() => Promise<void>) | undefined {
    const bare = this.#bare();
    if (bare) return () => this.#furnish(bare.prepared, bare.image);
    const missing = this.#missing();
    return missing && (() => this.#launch(missing));
  }

  #those(kind: Kind): Prepared[] {
    return this.#waiting.filter((prepared) => sameKind(prepared.kind, kind));
  }

  /** A container without files, and the image whose files it should have. */
  #bare(): { readonly prepared: Prepared; readonly image: string } | undefined {
    if (!this.#parts.isServing()) return undefined;
    for (const { those, images, missing } of this.#furnishing()) {
      const prepared = those.find(({ image }) => image === undefined);
      if (prepared && missing !== undefined && those.filter(({ image }) => image !== undefined).length < images.length) return { prepared, image: missing };
    }
    return undefined;
  }

  /** A container with files that are asked for less than others which none has. */
  #useless(): Prepared | undefined {
    const changing = this.#furnishing().filter(({ missing }) => missing !== undefined);
    const useless = changing.flatMap(({ those, images }) =>
      those.filter(({ image }) => image !== undefined && countIn(having(those), image) > countIn(images, image)),
    );
    return useless[0];
  }

  /** For each kind, what waits, the images whose files it should have, and the first that too few have. */
  #furnishing() {
    return this.#wanted().map(({ kind, count }) => {
      const those = this.#those(kind);
      const images = this.#demand.images(kind, count).filter((image) => !this.#isUnfit(image));
      return { those, images, missing: images.find((image) => countIn(having(those), image) < countIn(images, image)) };
    });
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
    return this.#those(kind).length;
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

  async #discard({ id, furnished }: Prepared): Promise<void> {
    await furnished;
    await this.#parts.remove(id).catch((err) => this.#parts.log.warn({ err, sandbox: id }, "a prepared container could not be removed"));
  }
}

const specOf = (sandboxId: string, kind: Kind): ContainerSpec => ({ sandboxId, ...kind, isolation: "standard" });

const having = (those: readonly Prepared[]): (string | undefined)[] => those.map(({ image }) => image);

const countIn = (images: readonly (string | undefined)[], image: string): number => images.filter((each) => each === image).length;

const usual: Kind = { cpus: sandboxDefaults.cpus, memoryMiB: sandboxDefaults.memoryMiB, network: sandboxDefaults.access };
