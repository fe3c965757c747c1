/** Counts the turns that others have on the event loop while something long goes on. */
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
