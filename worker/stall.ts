/**
 * Notices that this process was stopped or starved. The calls that it reads then may be from processes that have died
 * meanwhile, and what those had asked for may have been done again by others.
 */
const beatMs = 250;
/** A longer pause is a stall; a gateway that dies within a shorter one is given time by those that look after its calls. */
const stallMs = 750;
/** What had piled up has been read after this time. */
const aftermathMs = 5_000;

export class StallWatch {
  #beatAtMs = performance.now();
  #suspectUntilMs = 0;

  constructor() {
    setInterval(() => this.#beat(), beatMs).unref();
  }

  /** Whether a call that is read now may have waited for long. */
  get suspect(): boolean {
    this.#beat();
    return this.#beatAtMs < this.#suspectUntilMs;
  }

  #beat(): void {
    const now = performance.now();
    if (now - this.#beatAtMs > stallMs) this.#suspectUntilMs = now + aftermathMs;
    this.#beatAtMs = now;
  }
}
