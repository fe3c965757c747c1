/**
 * Whether anything can be stored at all. A server that was cut off from the other ones of its cluster, with this process beside
 * it, keeps the connection and answers reads from its own copy, which may be of long ago: keys that were revoked since, for
 * example. Only a write takes a majority of the servers. So it is tried again and again, and while it fails, the bus counts as
 * lost.
 */
import type { Bucket as Kv } from "@nats-io/kv";
import { every } from "../util/background.ts";
import type { Logger } from "../util/log.ts";
import { openBucket } from "./kv.ts";
import type { Bus } from "./nats.ts";
import { buckets } from "./subjects.ts";

const beatMs = 2_000;
/** Longer than the servers need to find another leader for what is stored. */
const lostAfterMs = 15_000;
/** Entries of processes that are gone vanish after this time. */
const ttlMs = 120_000;

/** Begins to look. Returns a function that ends it. @param name of this process */
export async function watchPulse(bus: Bus, name: string, log: Logger): Promise<() => void> {
  const pulse = new Pulse(bus, await openPulse(bus), name);
  const timer = every(beatMs, log, "the storage could not be looked after", () => pulse.beat());
  return () => clearInterval(timer);
}

const openPulse = (bus: Bus): Promise<Kv> => openBucket(bus, buckets.pulse, { ttlMs });

class Pulse {
  readonly #bus: Bus;
  #kv: Kv;
  readonly #name: string;
  #storedAtMs = performance.now();
  #beatAtMs = performance.now();

  constructor(bus: Bus, kv: Kv, name: string) {
    this.#bus = bus;
    this.#kv = kv;
    this.#name = name;
  }

  /** One server alone is connected or not, which is known without this. */
  async beat(): Promise<void> {
    const { connection } = this.#bus;
    const nowMs = performance.now();
    // If this process stood still, that says nothing about the servers.
    if (nowMs - this.#beatAtMs > 2 * beatMs) this.#storedAtMs = nowMs;
    this.#beatAtMs = nowMs;
    if (connection.info?.cluster === undefined || (await this.#stores())) {
      this.#storedAtMs = performance.now();
      this.#bus.storageIsThere(true);
    } else if (performance.now() - this.#storedAtMs > lostAfterMs) this.#bus.storageIsThere(false);
  }

  async #stores(): Promise<boolean> {
    try {
      await this.#kv.put(this.#name, "");
      return true;
    } catch {
      // It may be gone with all that the servers had.
      this.#kv = await openPulse(this.#bus).catch(() => this.#kv);
      return false;
    }
  }
}
