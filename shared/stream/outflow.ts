/**
 * What a process has sent for its streams and the NATS server has not taken yet. It is bounded, whatever credit the streams have,
 * so that it costs little memory and nothing else that this process has to say waits for long behind it. A heartbeat, for example.
 */

/** How often the server is asked whether it has taken everything so far. */
const stepBytes = 256 * 1024;
const waitingBytesMax = 2 * 1024 * 1024;
/** What a stream sends at its turn, roughly: what it is exactly is counted then. */
const turnBytes = 64 * 1024;

export class Outflow {
  readonly #flush: () => Promise<void>;
  /** Streams that have something to send, in order. */
  readonly #queue: (() => void)[] = [];
  #sentBytes = 0;
  #askedBytes = 0;
  #takenBytes = 0;
  /** Whether the server has still to answer. */
  #isAsked = false;

  /** @param flush resolves when the server has taken what was sent before */
  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  /** Resolves when it is the turn of a stream that has something to send, which it must then do at once; undefined if that is now. */
  turn(): Promise<void> | undefined {
    if (this.#roomBytes > 0 && this.#queue.length === 0) return undefined;
    const turn = new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#askIfDue();
    return turn;
  }

  /** Counts what was sent. */
  sent(bytes: number): void {
    this.#sentBytes += bytes;
    this.#askIfDue();
  }

  /** Nothing is on its way any more, and nobody needs to wait. */
  reset(): void {
    this.#askedBytes = this.#sentBytes;
    this.#takenBytes = this.#sentBytes;
    for (const go of this.#queue.splice(0)) go();
  }

  get #roomBytes(): number {
    return waitingBytesMax - (this.#sentBytes - this.#takenBytes);
  }

  /** One question at a time: those who have their turn by an answer have sent before the next. */
  #askIfDue(): void {
    // Those that had their turn may have sent little, and others wait.
    const isDue = this.#sentBytes - this.#askedBytes >= stepBytes || this.#queue.length > 0;
    if (this.#isAsked || !isDue) return;
    const upToBytes = this.#sentBytes;
    this.#askedBytes = upToBytes;
    this.#isAsked = true;
    const taken = (): void => this.#taken(upToBytes);
    this.#flush().then(taken, taken);
  }

  #taken(upToBytes: number): void {
    this.#isAsked = false;
    this.#takenBytes = Math.max(this.#takenBytes, upToBytes);
    for (let roomBytes = this.#roomBytes; roomBytes > 0 && this.#queue.length > 0; roomBytes -= turnBytes) this.#queue.shift()?.();
    this.#askIfDue();
  }
}
