/**
 * Batches a client's messages to the worker. The first message is sent at once, and those that follow within a
 * millisecond are sent together, so that a client that sends single bytes as fast as it can causes no extra load. Only an
 * acknowledgement of much output waits for nothing.
 */
import { SandgateError } from "../../shared/errors.ts";
import type { ClientMessage } from "../../shared/schemas/sessions.ts";
import { windowBytes } from "../../shared/stream/session/protocol.ts";

const togetherDefaultMs = 1;
/** An acknowledgement of so much output is sent at once, because the worker may wait for it: an eighth of what it may send without. */
const promptBytes = windowBytes / 8;
/** The most bytes of input combined into one message. */
const togetherBytes = 64 * 1024;
/** The most messages that may wait for the session to begin; a client needs few until then. */
const earlyMax = 1_000;

interface Input {
  readonly type: "input";
  readonly pieces: Uint8Array[];
  bytes: number;
}
type Item = Input | ClientMessage;

/** The receiver of the batched messages. */
interface OutboxTarget {
  /** Sends input, in pieces. */
  push(...pieces: Uint8Array[]): void;
  say(message: ClientMessage): void;
}

export class Outbox {
  readonly #togetherMs: number;
  #waiting: Item[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  /** Undefined until the worker is ready. */
  #target: OutboxTarget | undefined;
  #isClosed = false;
  /** How far the output was acknowledged to the worker. */
  #acknowledged = 0;

  /** @param togetherMs how long messages are collected after one was sent. */
  constructor(togetherMs = togetherDefaultMs) {
    this.#togetherMs = togetherMs;
  }

  /** Called when the worker is ready: sends what has waited. */
  open(target: OutboxTarget): void {
    this.#target ??= target;
    this.#flush();
  }

  /** Called when the client disconnects: sends what is waiting, and drops later messages. */
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
    if (this.#target && message.type === "ack" && message.offset - this.#acknowledged >= promptBytes) return this.#tell(this.#target, message);
    this.#add(message);
  }

  /** Drops waiting messages that the new one replaces: earlier acks, and earlier resizes or equal signals since the last input. */
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
      else this.#tell(this.#target, item);
    }
  }

  #tell(target: OutboxTarget, message: ClientMessage): void {
    if (message.type === "ack") this.#acknowledged = message.offset;
    target.say(message);
  }
}
