/** The open WebSockets of a gateway: limits their number, checks that clients are alive, and ends them on demand. */

import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { pingMs } from "../../shared/stream/session/protocol.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";

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
