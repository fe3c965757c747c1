/** The open WebSockets of a gateway: limits their number and their messages, checks that clients are alive, and ends them on demand. */
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import type { ClientMessage } from "../../shared/schemas/sessions.ts";
import { pingMs } from "../../shared/stream/session/protocol.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";

const windowMs = 1_000;
/** What one socket may spend per window. */
const socketBudget = 2_500;
/** What all sockets of a limit key may spend per window. */
const keyBudget = 2 * socketBudget;
/** Costs of messages that cause the worker real work; all others cost 1. */
const costs: { readonly [type in ClientMessage["type"] | "input"]?: number } = { resize: 10, signal: 50 };

/**
 * Rate limit for WebSocket messages. Each message costs the gateway time, however short it is, and a client can send the
 * next one without waiting for an answer. Counted per socket, and per limit key (an API key, or all browsers of an account).
 * The socket's budget is smaller, so a flooding socket is closed before the others of its key are affected.
 */
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

/** An open WebSocket of a live session. */
export interface OpenSocket {
  readonly caller: Caller;
  /** Pings the client, or closes the socket if the client has sent nothing since the last check. */
  check(): void;
  /** Sends the error to the client and closes the socket. */
  fail(error: SandgateError): void;
  /** Closes the socket because this gateway is stopping. */
  restart(): void;
}

export class Sockets {
  readonly #max: number;
  readonly #open = new Set<OpenSocket>();
  readonly #timer: NodeJS.Timeout;
  #draining = false;

  constructor(max: number, log: Logger) {
    this.#max = max;
    this.#timer = every(pingMs, log, "could not check the clients of WebSockets", () => this.#check()).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  /** @throws {SandgateError} `unavailable` when no more sockets are accepted. */
  refuseIfFull(): void {
    if (this.#draining) throw errors.stopping("gateway");
    if (this.#open.size >= this.#max) throw new SandgateError("unavailable", "the gateway has no room for another WebSocket");
  }

  add(socket: OpenSocket): void {
    this.#open.add(socket);
    // It may have been admitted before the shutdown began.
    if (this.#draining) socket.restart();
  }

  delete(socket: OpenSocket): void {
    this.#open.delete(socket);
  }

  /** Ends the sockets of the matching callers. */
  cancel(isMeant: (caller: Caller) => boolean, reason: SandgateError): void {
    for (const socket of [...this.#open]) if (isMeant(socket.caller)) socket.fail(reason);
  }

  /** Closes all sockets, so that their clients reconnect to another gateway. */
  drain(): void {
    this.#draining = true;
    clearInterval(this.#timer);
    for (const socket of [...this.#open]) socket.restart();
  }

  #check(): void {
    for (const socket of [...this.#open]) socket.check();
  }
}
