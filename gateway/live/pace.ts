/**
 * How much WebSockets may ask of a gateway: each message takes time from everybody else's, however short it is, and the
 * next one comes without waiting for any answer. Counted for each socket, and for all of a key, or of the browsers of an
 * account, together; so one that floods is closed before the others of its key are.
 */
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/session-messages.ts";

const windowMs = 1_000;
/** What one socket may spend in each window. */
const socketBudget = 2_500;
/** What all sockets of a key may spend. */
const keyBudget = 2 * socketBudget;
/** Of messages that the worker has more to do for than to note them; all others cost 1. */
const costs: { readonly [type in ClientMessage["type"] | "input"]?: number } = { resize: 10, signal: 50 };

export class Pace {
  /** By socket and by key, in this window. */
  readonly #spent = new Map<object | string, number>();
  #window = 0;

  /** For a message that has come. @throws {SandgateError} `rate_limited`. */
  take(socket: object, limitKey: string, type: ClientMessage["type"] | "input"): void {
    const window = Math.floor(performance.now() / windowMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#spent.clear();
    }
    const cost = costs[type] ?? 1;
    this.#spend(socket, cost, socketBudget);
    this.#spend(limitKey, cost, keyBudget);
  }

  #spend(from: object | string, cost: number, budget: number): void {
    const spent = (this.#spent.get(from) ?? 0) + cost;
    if (spent > budget) throw new SandgateError("rate_limited", `more than ${budget} messages came in a second; write and acknowledge in larger pieces`);
    this.#spent.set(from, spent);
  }
}
