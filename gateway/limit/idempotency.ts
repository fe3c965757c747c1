/**
 * `Idempotency-Key`: a call that creates something is carried out once, however often it is sent. The first answer is
 * kept in JetStream for a day, so a repeated call may reach any gateway, even after the first one has died. If a gateway
 * dies during a call, the result is found by the id of the attempt, which the created resource carries.
 */

import { createHash } from "node:crypto";
import Type, { type Static } from "typebox";
import { ask } from "../../shared/bus/calls.ts";
import { NoResponder } from "../../shared/bus/failures.ts";
import type { BucketWriter, Versioned } from "../../shared/bus/kv.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { PeerWatch } from "../../shared/bus/presence.ts";
import { SandgateError } from "../../shared/errors.ts";
import { newId } from "../../shared/util/ids.ts";
import { pause } from "../../shared/waiting.ts";
import type { Answer, JsonText } from "../call.ts";
import type { Exchange } from "../http/exchange.ts";

export const IdempotencyRecord = Type.Object({
  /** SHA-256 of the request. */
  fingerprint: Type.String(),
  attempt_id: Type.String(),
  /** The gateway that works on it; empty when it gave up without knowing the outcome. */
  peer: Type.String(),
  answer: Type.Optional(Type.Object({ status: Type.Integer(), body: Type.String() })),
});
export type IdempotencyRecord = Static<typeof IdempotencyRecord>;

/** How long an answer is kept. */
export const idempotencyMs = 86_400_000;

/** A stored answer. A created resource is always answered with 201. */
type Kept = NonNullable<IdempotencyRecord["answer"]>;
const kept = (made: unknown): Kept => ({ status: 201, body: JSON.stringify(made) });

/** A call that can be repeated safely. */
export interface Task<M, A> {
  readonly accountId: string;
  /** The request, without the parts that differ between repetitions. */
  readonly wanted: object;
  /** Carries out the call. The created resource must carry the id of the attempt. */
  run(attemptId: string): Promise<M>;
  /** What an unfinished attempt has created after all, if anything. */
  recover(attemptId: string): Promise<M | undefined>;
  /** The answer. */
  show(made: M): A;
}

const keyPattern = /^[\x20-\x7e]{1,255}$/;
const pollMs = 200;
/** By then, messages that a gateway sent just before it died have arrived. */
const arrivalMs = 1_000;

export class Idempotency {
  readonly #bus: Bus;
  readonly #peers: PeerWatch;
  readonly #bucket: BucketWriter<IdempotencyRecord>;
  readonly #working = new Set<string>();

  constructor(bus: Bus, peers: PeerWatch, bucket: BucketWriter<IdempotencyRecord>) {
    this.#bus = bus;
    this.#peers = peers;
    this.#bucket = bucket;
  }

  /** Whether this gateway is working on the attempt. */
  isWorkingOn(attemptId: string): boolean {
    return this.#working.has(attemptId);
  }

  /**
   * Runs the task, or returns its stored answer if the same call was sent before.
   *
   * @throws {SandgateError} `invalid_request` for a bad key, `idempotency_conflict` for a different call with the same key.
   */
  async answer<M, A>(exchange: Exchange, task: Task<M, A>): Promise<Answer<A>> {
    const key = exchange.header("idempotency-key");
    if (!key) return task.show(await task.run(newId("reservation")));
    if (!keyPattern.test(key)) throw new SandgateError("invalid_request", "the Idempotency-Key must be 1 to 255 printable ASCII characters");
    const name = digest(`${task.accountId}\n${key}`);
    const { answer, isReplay } = await this.#once(exchange, name, digest(canonical(task.wanted)), task);
    if (isReplay) exchange.addHeaders({ "idempotency-replayed": "true" });
    return `${answer.body}\n` as JsonText<A>;
  }

  async #once<M>(exchange: Exchange, name: string, fingerprint: string, task: Task<M, unknown>): Promise<{ answer: Kept; isReplay: boolean }> {
    for (;;) {
      const mine: IdempotencyRecord = { fingerprint, attempt_id: newId("reservation"), peer: this.#peers.peer };
      this.#working.add(mine.attempt_id);
      try {
        if (await this.#bucket.create(name, mine)) return { answer: await this.#carryOut(name, mine, task), isReplay: false };
        const found = await this.#bucket.readVersion(name);
        if (!found) continue;
        if (found.value.fingerprint !== fingerprint) {
          throw new SandgateError("idempotency_conflict", "this Idempotency-Key was used for a different request");
        }
        if (found.value.answer) return { answer: found.value.answer, isReplay: true };
        const finished = (await this.#isAlive(found.value)) ? undefined : await this.#finish(name, found, mine, task);
        if (finished) return finished;
      } finally {
        this.#working.delete(mine.attempt_id);
      }
      if (exchange.unwanted) throw exchange.unwanted;
      await pause(pollMs);
    }
  }

  async #carryOut<M>(name: string, record: IdempotencyRecord, task: Task<M, unknown>): Promise<Kept> {
    const made = await task.run(record.attempt_id).catch(async (thrown: unknown) => {
      const error = SandgateError.from(thrown);
      // Either nothing was created and the call may be retried, or the outcome is unknown and must be recovered first.
      const isKnown = !["unavailable", "worker_lost", "internal_error"].includes(error.code);
      await (isKnown ? this.#bucket.delete(name) : this.#bucket.put(name, { ...record, peer: "" })).catch(() => {});
      throw thrown;
    });
    return this.#keep(name, record, kept(task.show(made)));
  }

  /** @throws {SandgateError} `unavailable` when it cannot be kept, whatever the reason: the caller must not take the call for refused, and finds what was made by another */
  async #keep(name: string, record: IdempotencyRecord, answer: Kept): Promise<Kept> {
    try {
      await this.#bucket.put(name, { ...record, answer });
      return answer;
    } catch (cause) {
      throw new SandgateError("unavailable", "the answer could not be stored; repeat the call with the same Idempotency-Key", { cause });
    }
  }

  /** Continues an abandoned attempt; undefined when another call was faster. */
  async #finish<M>(
    name: string,
    left: Versioned<IdempotencyRecord>,
    mine: IdempotencyRecord,
    task: Task<M, unknown>,
  ): Promise<{ answer: Kept; isReplay: boolean } | undefined> {
    const taken = { ...left.value, peer: mine.peer };
    this.#working.add(taken.attempt_id);
    try {
      if (!(await this.#bucket.replace(name, taken, left.revision))) return undefined;
      await pause(arrivalMs);
      const made = await task.recover(taken.attempt_id);
      if (!made) return { answer: await this.#carryOut(name, taken, task), isReplay: false };
      return { answer: await this.#keep(name, taken, kept(task.show(made))), isReplay: true };
    } finally {
      this.#working.delete(taken.attempt_id);
    }
  }

  /** Whether the gateway of an attempt is still working on it. */
  async #isAlive({ peer, attempt_id }: IdempotencyRecord): Promise<boolean> {
    if (peer === "") return false;
    if (peer === this.#peers.peer) return this.#working.has(attempt_id);
    try {
      const { ids } = await ask(this.#bus, "held", peer, { ids: [attempt_id] });
      return ids.length > 0;
    } catch (error) {
      return !(error instanceof NoResponder) && this.#peers.has(peer);
    }
  }
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

/** JSON that does not depend on the order of fields. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`)
    .join(",")}}`;
}
