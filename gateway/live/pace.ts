/**
 * Rate limit for WebSocket messages. Each message costs the gateway time, however short it is, and a client can send the
 * next one without waiting for an answer. Counted per socket, and per limit key (an API key, or all browsers of an account).
 * The socket's budget is smaller, so a flooding socket is closed before the others of its key are affected.
 */
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/session-messages.ts";

const windowMs = 1_000;
/** What one socket may spend per window. */
const socketBudget = 2_500;
/** What all sockets of a limit key may spend per window. */
const keyBudget = 2 * socketBudget;
/** Costs of messages that cause the worker real work; all others cost 1. */
const costs: { readonly [type in ClientMessage["type"] | "input"]?: number } = { resize: 10, signal: 50 };

export class Pace {
  /** What was spent in this window, by socket and by limit key. */
  readonly #spent = new Map<object | string, number>();
  #window = 0;

  /** Counts a received message. @throws {SandgateError} `rate_limited`. */
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
