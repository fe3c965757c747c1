/**
 * Notices when this process was stopped or starved. Calls that it reads right afterwards may come from processes that have died
 * meanwhile, and others may have repeated their work.
 */
const beatMs = 250;
/** A longer pause is a stall. For a gateway that dies during a shorter one, those that take over its calls wait long enough. */
const stallMs = 750;
/** By then, the backlog has been read. */
const aftermathMs = 5_000;

export class StallWatch {
  #beatAtMs = performance.now();
  #suspectUntilMs = 0;
  #times = 0;

  constructor() {
    setInterval(() => this.#beat(), beatMs).unref();
  }

  /** Whether a call read now may have waited for long. */
  get suspect(): boolean {
    this.#beat();
    return this.#beatAtMs < this.#suspectUntilMs;
  }

  /** How often that has happened. */
  get times(): number {
    this.#beat();
    return this.#times;
  }

  #beat(): void {
    const now = performance.now();
    if (now - this.#beatAtMs > stallMs) {
      this.#times++;
      this.#suspectUntilMs = now + aftermathMs;
    }
    this.#beatAtMs = now;
  }
}
