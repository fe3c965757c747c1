/** How many containers of which kind are worth keeping ready, by the creates of the last minutes. Without a clock of its own. */
import type { ContainerSpec } from "../runtime/podman/spec.ts";

/** What sandboxes must have in common for a container to become any of them. */
export type Kind = Pick<ContainerSpec, "cpus" | "memoryMiB" | "network">;

/** How many to keep. */
export interface Bounds {
  /** Of the usual kind, whatever is asked for. */
  readonly least: number;
  /** Of all kinds. */
  readonly most: number;
}

/** A kind, and how many of it to keep. */
export interface Wanted {
  readonly kind: Kind;
  readonly count: number;
}

/** For how long a create says something about those to come. */
const memoryMs = 600_000;
/** As many are kept as were asked for within such a time: what a burst takes, before more can be made. */
const burstMs = 10_000;
/** A single create is no demand. */
const countMin = 2;
/** Creates and kinds that are remembered. */
const timesMax = 256;
const kindsMax = 32;

export const sameKind = (one: Kind, other: Kind): boolean => keyOf(one) === keyOf(other);

const keyOf = ({ cpus, memoryMiB, network }: Kind): string => JSON.stringify([cpus, memoryMiB, network]);

interface Asked {
  readonly kind: Kind;
  /** Ascending. */
  readonly times: number[];
}

export class Demand {
  readonly #usual: Kind;
  /** The kind that was asked for last comes last. */
  readonly #asked = new Map<string, Asked>();

  /** @param usual what most sandboxes are */
  constructor(usual: Kind) {
    this.#usual = usual;
  }

  /** A create asks for a kind. @param nowMs never goes back */
  note(kind: Kind, nowMs: number): void {
    const key = keyOf(kind);
    const asked = this.#asked.get(key) ?? { kind, times: [] };
    this.#asked.delete(key);
    this.#asked.set(key, asked);
    asked.times.push(nowMs);
    if (asked.times.length > timesMax) asked.times.shift();
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > kindsMax && oldest !== undefined) this.#asked.delete(oldest);
  }

  /** Forgets that a kind was asked for. */
  forget(kind: Kind): void {
    this.#asked.delete(keyOf(kind));
  }

  /** What to keep, the kind that is asked for most first. Where there is not room for all, each gets its share. */
  wanted(nowMs: number, { least, most }: Bounds): Wanted[] {
    for (const [key, { times }] of this.#asked) {
      while (times[0] !== undefined && times[0] < nowMs - memoryMs) times.shift();
      if (times.length === 0) this.#asked.delete(key);
    }
    const bursts = [...this.#asked.values()].map(({ kind, times }) => ({ kind, count: burstOf(times) }));
    const others = bursts.filter(({ kind, count }) => count >= countMin && !sameKind(kind, this.#usual));
    const usual = Math.max(least, bursts.find(({ kind }) => sameKind(kind, this.#usual))?.count ?? 0);
    return shared([{ kind: this.#usual, count: usual }, ...others], most);
  }
}

/** The most creates within a short time. */
function burstOf(times: readonly number[]): number {
  let [most, from] = [0, 0];
  for (const [index, atMs] of times.entries()) {
    while ((times[from] ?? 0) <= atMs - burstMs) from++;
    most = Math.max(most, index - from + 1);
  }
  return most;
}

function shared(wanted: readonly Wanted[], most: number): Wanted[] {
  const total = wanted.reduce((sum, { count }) => sum + count, 0);
  const part = total > most ? most / total : 1;
  const parts = wanted.map(({ kind, count }) => ({ kind, count: Math.floor(count * part) }));
  let left = Math.min(most, total) - parts.reduce((sum, { count }) => sum + count, 0);
  const sorted = parts.toSorted((one, other) => other.count - one.count);
  return sorted.map(({ kind, count }) => ({ kind, count: left-- > 0 ? count + 1 : count })).filter(({ count }) => count > 0);
}

/** What the memory of the host allows to keep: a small part of what is free beyond what calls must find. @param kept how many are kept now, which have theirs */
export function roomFor(kept: number, memoryFreeBytes: number, floorBytes: number): number {
  return kept + Math.max(0, Math.floor((memoryFreeBytes - 2 * floorBytes) / freeShare / bytesEach));
}

/** What an idle container takes, with its network and what the kernel keeps for it. */
const bytesEach = 8 * 1024 ** 2;
/** The pool takes at most one part in so many. */
const freeShare = 8;
