/** The open WebSockets of a gateway: how many, whether their clients are alive, and which must end. */

import { SandgateError } from "../../shared/errors.ts";
import { pingMs } from "../../shared/stream/session/protocol.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";

/** One of them. */
export interface OpenSocket {
  readonly caller: Caller;
  /** Pings the client, or closes when it has given no sign of life since the last time. */
  check(): void;
  /** Ends it; the client is told why. */
  fail(error: SandgateError): void;
  /** Ends it because this gateway stops. */
  restart(): void;
}

export class Sockets {
  readonly #max: number;
  readonly #open = new Set<OpenSocket>();
  readonly #timer: NodeJS.Timeout;
  #draining = false;

  constructor(max: number, log: Logger) {
    this.#max = max;
    this.#timer = every(pingMs, log, "the clients of WebSockets could not be looked at", () => this.#check()).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  /** @throws {SandgateError} `unavailable` when no more are taken. */
  refuseIfFull(): void {
    if (this.#draining) throw new SandgateError("unavailable", "the gateway is shutting down");
    if (this.#open.size >= this.#max) throw new SandgateError("unavailable", "the gateway has no room for another WebSocket");
  }

  add(socket: OpenSocket): void {
    this.#open.add(socket);
    // It may have been let in before the shutdown began.
    if (this.#draining) socket.restart();
  }

  delete(socket: OpenSocket): void {
    this.#open.delete(socket);
  }

  /** Ends the sockets of some callers. */
  cancel(isMeant: (caller: Caller) => boolean, reason: SandgateError): void {
    for (const socket of [...this.#open]) if (isMeant(socket.caller)) socket.fail(reason);
  }

  /** Ends all, so that their clients go to another gateway. */
  drain(): void {
    this.#draining = true;
    clearInterval(this.#timer);
    for (const socket of [...this.#open]) socket.restart();
  }

  #check(): void {
    for (const socket of [...this.#open]) socket.check();
  }
}
