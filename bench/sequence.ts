/**
 * In what order contenders take their turns. It is another one in each round, by chance, so that nothing which recurs on the
 * machine always meets the same one. Whoever ran just before finds its data in the CPU's caches and the CPU at its own pace, so
 * the first call after somebody else's turn counts apart from those that follow it in a row.
 */

export interface Turn<C> {
  readonly contender: C;
  /** Whether another contender had the turn before; not if this one ended the round before. */
  readonly isAfterAnother: boolean;
}

export class Sequence<C> {
  readonly #contenders: readonly C[];
  readonly #random: () => number;
  #last: C | undefined;

  /** @param random numbers from 0 up to, not including, 1 */
  constructor(contenders: readonly C[], random: () => number) {
    this.#contenders = contenders;
    this.#random = random;
  }

  /** The turns of the next round. */
  *round(): Generator<Turn<C>> {
    const left = [...this.#contenders];
    while (left.length > 0) {
      const [contender] = left.splice(Math.floor(this.#random() * left.length), 1) as [C];
      const isAfterAnother = contender !== this.#last;
      this.#last = contender;
      yield { contender, isAfterAnother };
    }
  }
}
