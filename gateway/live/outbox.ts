/**
 * What a client has sent on its way to the worker. The first message goes at once, those that follow within a
 * millisecond go together: a client that types byte by byte as fast as it can makes no more of a load than others.
 */
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/session-messages.ts";

const togetherDefaultMs = 1;
/** Bytes of input that are put together into one message. */
const togetherBytes = 64 * 1024;
/** Messages that may wait for the session to begin; a client has little to say until then. */
const earlyMax = 1_000;

interface Input {
  readonly type: "input";
  readonly pieces: Uint8Array[];
  bytes: number;
}
type Item = Input | ClientMessage;

/** Where it goes. */
export interface OutboxTarget {
  /** Input, in pieces. */
  push(...pieces: Uint8Array[]): void;
  say(message: ClientMessage): void;
}

export class Outbox {
  readonly #togetherMs: number;
  #waiting: Item[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  /** Undefined until the worker listens. */
  #target: OutboxTarget | undefined;
  #isClosed = false;

  /** @param togetherMs how long what follows a message is put together. */
  constructor(togetherMs = togetherDefaultMs) {
    this.#togetherMs = togetherMs;
  }

  /** The worker listens: what has waited for that goes now. */
  open(target: OutboxTarget): void {
    this.#target ??= target;
    this.#flush();
  }

  /** The client has gone. What it said before that still counts. */
  close(): void {
    this.#flush();
    this.#isClosed = true;
    this.#waiting = [];
  }

  /** @throws {SandgateError} `rate_limited`. */
  input(bytes: Uint8Array): void {
    const last = this.#waiting.at(-1);
    if (last?.type === "input" && last.bytes + bytes.length <= togetherBytes) {
      last.pieces.push(bytes);
      last.bytes += bytes.length;
    } else {
      this.#add({ type: "input", pieces: [bytes], bytes: bytes.length });
    }
  }

  /** @throws {SandgateError} `rate_limited`. */
  message(message: ClientMessage): void {
    if (this.#target) this.#replace(message);
    this.#add(message);
  }

  /** Of acknowledgements the last one counts, of sizes the last one between two pieces of input. A signal that is pending is not sent twice. */
  #replace(message: ClientMessage): void {
    const sinceInput = this.#waiting.findLastIndex(({ type }) => type === "input") + 1;
    this.#waiting = this.#waiting.filter((item, index) => {
      if (item.type !== message.type) return true;
      if (message.type === "ack") return false;
      if (index < sinceInput) return true;
      return !(message.type === "resize" || (message.type === "signal" && item.type === "signal" && item.signal === message.signal));
    });
  }

  #add(item: Item): void {
    if (this.#isClosed) return;
    if (!this.#target && this.#waiting.length >= earlyMax) {
      throw new SandgateError("rate_limited", `at most ${earlyMax} messages may come before the session has begun`);
    }
    this.#waiting.push(item);
    if (!this.#target || this.#timer) return;
    if (performance.now() - this.#sentAtMs >= this.#togetherMs) this.#flush();
    else this.#timer = setTimeout(() => this.#flush(), this.#togetherMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#target) return;
    this.#sentAtMs = performance.now();
    for (const item of this.#waiting.splice(0)) {
      if (item.type === "input") this.#target.push(...item.pieces);
      else this.#target.say(item);
    }
  }
}
