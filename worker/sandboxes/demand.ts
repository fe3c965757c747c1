/** How many containers of which kind are worth keeping ready, and with which files, by the creates of the last minutes. Without a clock of its own. */
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
const createsMax = 256;
const kindsMax = 32;

export const sameKind = (one: Kind, other: Kind): boolean => keyOf(one) === keyOf(other);

const keyOf = ({ cpus, memoryMiB, network }: Kind): string => JSON.stringify([cpus, memoryMiB, network]);

interface Asked {
  readonly kind: Kind;
  /** In the order of their times. */
  readonly creates: { readonly atMs: number; readonly image: string | undefined }[];
}

/** What most sandboxes are. */
export interface Usual {
  readonly kind: Kind;
  readonly image: string;
}

export class Demand {
  readonly #usual: Usual;
  /** The kind that was asked for last comes last. */
  readonly #asked = new Map<string, Asked>();

  constructor(usual: Usual) {
    this.#usual = usual;
  }

  /** A create asks for a kind. @param image that its files are; undefined for others @param nowMs never goes back */
  note(kind: Kind, image: string | undefined, nowMs: number): void {
    const key = keyOf(kind);
    const asked = this.#asked.get(key) ?? { kind, creates: [] };
    this.#asked.delete(key);
    this.#asked.set(key, asked);
    asked.creates.push({ atMs: nowMs, image });
    if (asked.creates.length > createsMax) asked.creates.shift();
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > kindsMax && oldest !== undefined) this.#asked.delete(oldest);
  }

  /** Forgets that a kind was asked for. */
  forget(kind: Kind): void {
    this.#asked.delete(keyOf(kind));
  }

  /** Forgets which images were asked for, except the usual one. */
  forgetImages(): void {
    for (const { creates } of this.#asked.values()) {
      for (const [index, { atMs, image }] of creates.entries()) if (image !== this.#usual.image) creates[index] = { atMs, image: undefined };
    }
  }

  /**
   * The images that some of the containers kept of a kind should have as their files: what the last creates asked for. One of several is
   * to have none, for whatever comes.
   */
  images(kind: Kind, count: number): string[] {
    const { creates = [] } = this.#asked.get(keyOf(kind)) ?? {};
    const last = creates.slice(-count).map(({ image }) => image);
    const unknown = sameKind(kind, this.#usual.kind) ? Array.from({ length: count - last.length }, () => this.#usual.image) : [];
    const wanted = [...unknown, ...last].filter((image) => image !== undefined);
    return count > 1 && wanted.length === count ? wanted.slice(1) : wanted;
  }

  /** What to keep, the kind that is asked for most first. Where there is not room for all, each gets its share. */
  wanted(nowMs: number, { least, most }: Bounds): Wanted[] {
    for (const [key, { creates }] of this.#asked) {
      while (creates[0] !== undefined && creates[0].atMs < nowMs - memoryMs) creates.shift();
      if (creates.length === 0) this.#asked.delete(key);
    }
    const bursts = [...this.#asked.values()].map(({ kind, creates }) => ({ kind, count: burstOf(creates.map(({ atMs }) => atMs)) }));
    const { kind: usual } = this.#usual;
    const others = bursts.filter(({ kind, count }) => count >= countMin && !sameKind(kind, usual));
    const usualCount = Math.max(least, bursts.find(({ kind }) => sameKind(kind, usual))?.count ?? 0);
    return shared([{ kind: usual, count: usualCount }, ...others], most);
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
