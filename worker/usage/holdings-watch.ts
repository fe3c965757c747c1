/**
 * Takes thorough looks at sandboxes, one at a time: what their processes hold, and System V shared memory segments. Looks
 * are spaced out so that together they use a small part of one CPU. Urgent ones, which decide whether a sandbox is over its
 * memory limit, come first and without delay.
 */
import { Worker } from "node:worker_threads";
import { programFile } from "../../shared/programs.mjs";
import { Condition } from "../../shared/waiting.ts";
import type { Container } from "../runtime/container/container.ts";
import { segmentBytes } from "../runtime/container/segments.ts";
import type { Holdings, HoldingsRequest } from "./holdings.ts";
import type { ThreadReply, ThreadRequest } from "./holdings-thread.ts";
import type { Track } from "./track.ts";

/** After a look, the watch rests for this many times the look's duration, unless something urgent waits. */
const restFactor = 4;
/** The same sandbox is looked at again after this many times the duration of its last look. */
const againFactor = 10;
/** Segments are read at least this often, even when shared memory has not grown. */
const segmentsMs = 10_000;

/** The thread keeps little, so a young generation as large as the main thread's would be wasted. */
const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 };

export interface Look {
  readonly track: Track;
  readonly container: Container;
  readonly members: readonly number[];
  /** Whether to measure memory, because the kernel does not limit it for this sandbox. */
  readonly memory: boolean;
}

interface Waiting {
  look: Look;
  urgent: boolean;
  readonly done: PromiseWithResolvers<Holdings | undefined>;
}

export class HoldingsWatch {
  readonly #reader = new HoldingsReader();
  readonly #waiting = new Map<Track, Waiting>();
  readonly #descriptorsMax: number;
  /** Wakes the watch from a rest when something urgent arrives. */
  readonly #urgency = new Condition();
  #running = false;
  /** When the machine's shared memory last grew. */
  #sharedGrewAtMs = 0;

  constructor(descriptorsMax: number) {
    this.#descriptorsMax = descriptorsMax;
  }

  /** Any sandbox's segments may have grown, so the next look at each reads them again. */
  noteSharedGrowth(): void {
    this.#sharedGrewAtMs = Date.now();
  }

  stop(): Promise<void> {
    return this.#reader.stop();
  }

  /** Resolves with the findings after `track` was updated, or undefined when nothing could be read. */
  look(look: Look, urgent: boolean): Promise<Holdings | undefined> {
    const waiting = this.#waiting.get(look.track) ?? { look, urgent, done: Promise.withResolvers<Holdings | undefined>() };
    waiting.look = look;
    waiting.urgent ||= urgent;
    this.#waiting.set(look.track, waiting);
    if (urgent) this.#urgency.notify();
    if (!this.#running) void this.#run();
    return waiting.done.promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let next = this.#next(); next; next = this.#next()) {
      this.#waiting.delete(next.look.track);
      const startedAtMs = performance.now();
      const found = await this.#take(next.look).catch(() => undefined);
      const tookMs = performance.now() - startedAtMs;
      next.look.track.lookDueAtMs = Date.now() + againFactor * tookMs;
      next.done.resolve(found);
      if (![...this.#waiting.values()].some(({ urgent }) => urgent)) await this.#urgency.wait(restFactor * tookMs);
    }
    this.#running = false;
  }

  #next(): Waiting | undefined {
    const all = [...this.#waiting.values()];
    return all.find(({ urgent }) => urgent) ?? all[0];
  }

  async #take({ track, container, members, memory }: Look): Promise<Holdings | undefined> {
    const { initPid, writableLayer: layer } = container;
    const [holdings] = await Promise.all([
      this.#reader.read({ members, initPid, layer, descriptorsMax: this.#descriptorsMax, memory }),
      memory ? this.#readSegments(track, initPid, members.length === 1) : undefined,
    ]);
    if (!holdings) return undefined;
    track.lookedAtMs = Date.now();
    track.descriptors = holdings.descriptors;
    const sharedBytes = holdings.sharedBytes + track.segmentBytes;
    if (memory) track.found({ bytes: holdings.privateBytes + sharedBytes, sharedBytes, residentBytes: holdings.residentBytes });
    return holdings;
  }

  /** @param isLast whether no command runs any more, so that the segments found now will stay. */
  async #readSegments(track: Track, initPid: number, isLast: boolean): Promise<void> {
    const now = Date.now();
    const isKnown = now - track.segmentsReadAtMs < segmentsMs && track.segmentsReadAtMs > this.#sharedGrewAtMs;
    if (isKnown && !isLast && !track.endedForMemory) return;
    const bytes = await segmentBytes(initPid);
    if (bytes === undefined) return;
    track.segmentBytes = bytes;
    track.segmentsReadAtMs = now;
  }
}

/** Talks to the thread that reads what sandboxes hold, and replaces the thread when it fails. */
class HoldingsReader {
  readonly #pending = new Map<number, PromiseWithResolvers<Holdings | undefined>>();
  #thread: Worker | undefined;
  #serial = 0;

  /** Resolves to undefined when the holdings could not be read. */
  read(request: HoldingsRequest): Promise<Holdings | undefined> {
    const id = this.#serial++;
    const pending = Promise.withResolvers<Holdings | undefined>();
    this.#pending.set(id, pending);
    this.#thread ??= this.#start();
    this.#thread.postMessage({ ...request, id } satisfies ThreadRequest);
    return pending.promise;
  }

  async stop(): Promise<void> {
    await this.#thread?.terminate();
  }

  #start(): Worker {
    const thread = new Worker(programFile("worker/usage/holdings-thread.ts"), { resourceLimits });
    thread.unref();
    thread.on("message", ({ id, holdings }: ThreadReply) => this.#settle(id, holdings));
    // Includes a thread that ran out of memory. Its requests are repeated with the next look.
    thread.once("error", () => this.#ended(thread));
    thread.once("exit", () => this.#ended(thread));
    return thread;
  }

  #settle(id: number, holdings: Holdings | undefined): void {
    this.#pending.get(id)?.resolve(holdings);
    this.#pending.delete(id);
  }

  #ended(thread: Worker): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    for (const id of [...this.#pending.keys()]) this.#settle(id, undefined);
  }
}
