/** What one gateway holds at a time: bounds the calls in progress, and ends those whose key or account may no more. */
import { SandgateError } from "../../shared/errors.ts";
import type { Caller } from "../call.ts";
import type { Exchange } from "../http/exchange.ts";
import type { CallRoute } from "./route.ts";

interface Held {
  readonly route: CallRoute;
  readonly caller: Caller | undefined;
}

export class Admission {
  readonly #max: number;
  /** Calls in progress that have waited for something; the others are over before anybody could ask. */
  readonly #waiting = new Map<Exchange, Held>();
  #draining = false;

  constructor(max: number) {
    this.#max = max;
  }

  get inProgress(): number {
    return this.#waiting.size;
  }

  /** From now on every new call is refused. */
  drain(): void {
    this.#draining = true;
  }

  /** @throws {SandgateError} `unavailable` when no more calls are taken. */
  refuseIfFull(): void {
    if (this.#draining) throw new SandgateError("unavailable", "the gateway is shutting down");
    if (this.#waiting.size >= this.#max) throw new SandgateError("unavailable", "the gateway is busy");
  }

  /** Counts a call until it is over. */
  hold(exchange: Exchange, route: CallRoute, caller: Caller | undefined): void {
    this.#waiting.set(exchange, { route, caller });
    exchange.onDone(() => this.#waiting.delete(exchange));
  }

  /** Ends the calls of some callers; their clients are told why. */
  cancel(isMeant: (caller: Caller, route: CallRoute) => boolean, reason: SandgateError): void {
    for (const [exchange, { route, caller }] of [...this.#waiting]) if (caller && isMeant(caller, route)) exchange.cancel(reason);
  }
}
