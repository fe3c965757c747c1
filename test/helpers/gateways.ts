/** The counting part of gateways, in the test's process and without HTTP: limits, reservations and the calls between gateways. */

import { servePeers } from "../../gateway/api/peers.ts";
import { EntryMirror } from "../../gateway/fleet/entries.ts";
import { SandboxDirectory } from "../../gateway/fleet/sandboxes.ts";
import { Idempotency, IdempotencyRecord } from "../../gateway/limit/idempotency.ts";
import { Ownership, rendezvous } from "../../gateway/limit/ownership.ts";
import { RateLimiter } from "../../gateway/limit/rates.ts";
import { Reservations } from "../../gateway/limit/reservations.ts";
import { SessionTokens } from "../../gateway/live/tokens.ts";
import { AccountActivity } from "../../gateway/metrics/activity.ts";
import { SandboxEntry } from "../../shared/bus/entries.ts";
import { BucketWriter } from "../../shared/bus/kv.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { PeerWatch } from "../../shared/bus/presence.ts";
import { buckets, callsTo, peers } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { newId } from "../../shared/util/ids.ts";
import { quiet, type TestNats } from "./nats.ts";
import { until } from "./until.ts";

export class TestGateway {
  readonly id = peers.gateway(newId("gateway"));
  readonly bus: Bus;
  readonly peers: PeerWatch;
  readonly ownership: Ownership;
  readonly rates: RateLimiter;
  readonly reservations: Reservations;
  readonly #parts: Parameters<typeof servePeers>[1];
  /** Receives the calls of other gateways and never answers. */
  #deaf: { unsubscribe(): void } | undefined;

  private constructor(bus: Bus, mirror: EntryMirror<SandboxEntry>, records: BucketWriter<IdempotencyRecord>) {
    this.bus = bus;
    this.peers = new PeerWatch(bus, this.id, quiet);
    this.ownership = new Ownership(bus, this.peers, quiet);
    this.rates = new RateLimiter(bus, this.ownership);
    const directory = new SandboxDirectory(mirror);
    this.reservations = new Reservations(bus, this.peers, this.ownership, directory, quiet);
    this.#parts = {
      ownership: this.ownership,
      rates: this.rates,
      reservations: this.reservations,
      idempotency: new Idempotency(bus, this.peers, records),
      activity: new AccountActivity(directory, quiet),
      moves: { holds: () => false, settle: async () => ({ is_moved: false }) },
      tokens: new SessionTokens(bus, this.id.slice(peers.gateway("").length)),
    };
  }

  /** Creates a gateway that the others do not know yet. */
  static async open(nats: TestNats): Promise<TestGateway> {
    const bus = await nats.connect();
    const mirror = await EntryMirror.watch(bus, buckets.sandboxes, checker(SandboxEntry), quiet);
    return new TestGateway(bus, mirror, await BucketWriter.open(bus, buckets.idempotency, checker(IdempotencyRecord)));
  }

  /** Announces the gateway; with `deaf`, it answers nobody until `hear`. */
  join(options: { deaf?: boolean } = {}): void {
    if (options.deaf) this.#deaf = this.bus.connection.subscribe(callsTo("gateway", this.id), { callback: () => {} });
    else void this.hear();
    this.peers.start(() => ({ gateway: true }));
  }

  /** Resolves when the server knows. */
  async hear(): Promise<void> {
    this.#deaf?.unsubscribe();
    servePeers(this.bus, this.#parts);
    await this.bus.connection.flush();
  }

  /** Leaves like a gateway that is asked to stop. */
  leave(): void {
    this.ownership.leave();
    this.peers.leave();
    this.reservations.stop();
  }

  /** Disappears like a gateway that is killed: silently. */
  async die(): Promise<void> {
    this.reservations.stop();
    await this.bus.connection.close();
  }
}

/** Resolves when these gateways know each other and nobody else. */
export async function acquainted(gateways: readonly TestGateway[]): Promise<void> {
  const all = namesOf(gateways.map(({ id }) => id));
  await until("the gateways to know each other", () => gateways.every(({ ownership }) => namesOf(ownership.gateways()) === all));
}

const namesOf = (ids: readonly string[]): string => [...ids].sort().join();

/** A key that the first gateway owns when all are there, and that the second owns without the first. */
export function keyOf(gateways: readonly TestGateway[]): string {
  const ids = gateways.map(({ id }) => id);
  for (let number = 0; ; number++) {
    const key = `key_${number}`;
    if (rendezvous(key, ids) === ids[0] && (ids.length === 1 || rendezvous(key, ids.slice(1)) === ids[1])) return key;
  }
}
