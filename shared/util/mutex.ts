/** Queues for work: one task at a time per key, or at most n at a time. */

/** Runs tasks with the same key one after another, and tasks with different keys in parallel. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>();

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const mine = before.then(task, task);
    const tail = mine.catch(() => {});
    this.#tails.set(key, tail);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}

/** A counter of permits (slots, bytes) with a first-come queue. */
export class Semaphore {
  #free: number;
  readonly #waiting: { amount: number; go: () => void }[] = [];

  constructor(permits: number) {
    this.#free = permits;
  }

  async acquire(amount = 1): Promise<() => void> {
    if (this.#waiting.length > 0 || this.#free < amount) {
      await new Promise<void>((go) => this.#waiting.push({ amount, go }));
    } else {
      this.#free -= amount;
    }
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#free += amount;
      this.#wake();
    };
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    const release = await this.acquire();
    try {
      return await task();
    } finally {
      release();
    }
  }

  #wake(): void {
    for (let next = this.#waiting[0]; next && this.#free >= next.amount; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= next.amount;
      next.go();
    }
  }
}

/** Runs one task per key at a time and lets later callers of the same key share its result. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  /** How many tasks run now. */
  get size(): number {
    return this.#running.size;
  }

  run(key: string, task: () => Promise<T>): Promise<T> {
    const shared = this.#running.get(key) ?? task().finally(() => this.#running.delete(key));
    this.#running.set(key, shared);
    return shared;
  }
}
