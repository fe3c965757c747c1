/** Counts the turns of the event loop during a long operation. */
export class Turns {
  #count = 0;
  #next = setImmediate(() => this.#turn());

  /** Returns how many there were. */
  stop(): number {
    clearImmediate(this.#next);
    return this.#count;
  }

  #turn(): void {
    this.#count++;
    this.#next = setImmediate(() => this.#turn());
  }
}
