/** Bounds the calls in progress on a gateway, and cancels those whose key or account has lost its access. */
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { Caller } from "../call.ts";
import type { Exchange } from "../http/exchange.ts";
import type { CallRoute } from "./route.ts";

interface Held {
  readonly route: CallRoute;
  readonly caller: Caller | undefined;
}

export class Admission {
  readonly #max: number;
  /** Calls that are waiting for something. All others finish synchronously and need no tracking. */
  readonly #waiting = new Map<Exchange, Held>();
  #draining = false;

  constructor(max: number) {
    this.#max = max;
  }

  get inProgress(): number {
    return this.#waiting.size;
  }

  /** Refuses every new call from now on. */
  drain(): void {
    this.#draining = true;
  }

  /** @throws {SandgateError} `unavailable` when no more calls are accepted. */
  refuseIfFull(): void {
    if (this.#draining) throw errors.stopping("gateway");
    if (this.#waiting.size >= this.#max) throw new SandgateError("unavailable", "the gateway is busy");
  }

  /** Counts a call until it is over. */
  hold(exchange: Exchange, route: CallRoute, caller: Caller | undefined): void {
    this.#waiting.set(exchange, { route, caller });
    exchange.onDone(() => this.#waiting.delete(exchange));
  }

  /** Cancels the matching calls and sends their clients the reason. */
  cancel(isMeant: (caller: Caller, route: CallRoute) => boolean, reason: SandgateError): void {
    for (const [exchange, { route, caller }] of [...this.#waiting]) if (caller && isMeant(caller, route)) exchange.cancel(reason);
  }
}
