/** Rate limits, reservations and idempotency. */
import { BucketWriter } from "../../shared/bus/kv.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { Semaphore } from "../../shared/util/mutex.ts";
import type { Base } from "../base.ts";
import type { SandboxDirectory } from "../fleet/sandboxes.ts";
import { AddressLimit } from "./addresses.ts";
import { Idempotency, IdempotencyRecord, idempotencyMs } from "./idempotency.ts";
import { Ownership } from "./ownership.ts";
import { RateLimiter } from "./rates.ts";
import { Reservations } from "./reservations.ts";

const minuteMs = 60_000;

export type Limits = Readonly<Awaited<ReturnType<typeof openLimits>>>;

export async function openLimits({ config, bus, peers, log }: Base, sandboxes: SandboxDirectory) {
  const ownership = new Ownership(bus, peers, log);
  const answers = await BucketWriter.open(bus, buckets.idempotency, checker(IdempotencyRecord), { ttlMs: idempotencyMs });
  return {
    ownership,
    rates: new RateLimiter(bus, ownership),
    reservations: new Reservations(bus, peers, ownership, sandboxes, log),
    idempotency: new Idempotency(bus, peers, answers),
    /** Failed authentications, by key, cookie or password. */
    failures: new AddressLimit(config.authFailuresPerAddress, minuteMs, "too many failed authentications from this address"),
    /** Created accounts. */
    signUps: new AddressLimit(config.signUpsPerAddress, 60 * minuteMs, "too many new accounts from this address"),
    /** Bytes that synchronous executions with large outputs may hold. */
    outputMemory: new Semaphore(Math.max(config.syncMemoryBytesMax, 2 * config.syncOutputBytesMax)),
  };
}
