/** Takes a stream apart into pieces of known lengths. */
export class ByteSource {
  readonly #stream: AsyncIterator<Uint8Array>;
  readonly #missing: () => Error;
  #held: Buffer = Buffer.alloc(0);

  /** @param missing what is thrown where the stream ends too early */
  constructor(stream: AsyncIterable<Uint8Array>, missing: () => Error) {
    this.#stream = stream[Symbol.asyncIterator]();
    this.#missing = missing;
  }

  /** So many bytes, and no more. */
  async take(length: number): Promise<Buffer> {
    const parts = [this.#held];
    for (let have = this.#held.length; have < length; ) {
      const { value, done } = await this.#stream.next();
      if (done) throw this.#missing();
      parts.push(Buffer.from(value));
      have += value.length;
    }
    const all = parts.length === 1 ? this.#held : Buffer.concat(parts);
    this.#held = all.subarray(length);
    return all.subarray(0, length);
  }

  async areOver(): Promise<boolean> {
    while (this.#held.length === 0) {
      const { value, done } = await this.#stream.next();
      if (done) return true;
      this.#held = Buffer.from(value);
    }
    return false;
  }

  /** All that follows. Ends the stream with it. */
  async *rest(): AsyncGenerator<Uint8Array> {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    try {
      if (held.length > 0) yield held;
      for (let next = await this.#stream.next(); !next.done; next = await this.#stream.next()) yield next.value;
    } finally {
      await this.#stream.return?.();
    }
  }
}
