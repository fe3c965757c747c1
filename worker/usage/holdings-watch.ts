/**
 * Looks thoroughly at sandboxes, one at a time: at what their processes hold and at System V's segments. Most looks are
 * spread out so that all together take a small part of one CPU; those that decide whether a sandbox is over its memory come
 * first and at once.
 */
import { Condition } from "../../shared/waiting.ts";
import type { Container } from "../runtime/container/container.ts";
import { segmentBytes } from "../runtime/container/segments.ts";
import type { Holdings } from "./holdings.ts";
import { HoldingsReader } from "./holdings-reader.ts";
import type { Track } from "./track.ts";

/** After a look that nobody waits for there is a rest of this many times its duration. */
const restFactor = 4;
/** One sandbox is looked at again after this many times the duration of its last look. */
const againFactor = 10;
/** Segments are looked for this often even where shared memory has not grown. */
const segmentsMs = 10_000;

export interface Look {
  readonly track: Track;
  readonly container: Container;
  readonly members: readonly number[];
  /** Whether its memory is counted by nobody else. */
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
  /** Something urgent ends a rest. */
  readonly #urgency = new Condition();
  #running = false;
  /** When shared memory of the machine has last grown. */
  #sharedGrewAtMs = 0;

  constructor(descriptorsMax: number) {
    this.#descriptorsMax = descriptorsMax;
  }

  /** Everybody's segments may have grown: they are read again with the next look. */
  noteSharedGrowth(): void {
    this.#sharedGrewAtMs = Date.now();
  }

  stop(): Promise<void> {
    return this.#reader.stop();
  }

  /** Resolves with what was found, after `track` has been told; undefined when nothing could be read. */
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

  /** @param isLast whether nothing runs any more, so that what is found now stays. */
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
