/** Names and ids of images that are being worked with and must not be removed meanwhile. */
export class Pins {
  readonly #counts = new Map<string, number>();

  /** Holds a name or an id until the returned function is called. */
  add(key: string): () => void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#counts.get(key) ?? 1) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
  }

  has(key: string): boolean {
    return this.#counts.has(key);
  }
}
