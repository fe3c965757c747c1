/** Keeps new commands out of a container while it must stay frozen. */

interface Gate {
  inside: number;
  /** Resolves when the gate opens again; undefined while it is open. */
  closed: PromiseWithResolvers<void> | undefined;
  /** Called when the last command being started runs. */
  emptied: (() => void) | undefined;
}

export class Gates {
  readonly #gates = new Map<string, Gate>();

  /** Waits while the gate is closed. Call the returned function once the command runs or could not be started. */
  async enter(containerId: string): Promise<() => void> {
    const gate = this.#gate(containerId);
    while (gate.closed) await gate.closed.promise;
    gate.inside++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      gate.inside--;
      if (gate.inside === 0) gate.emptied?.();
      this.#forget(containerId, gate);
    };
  }

  /** Closes the gate. Resolves when no command is being started any more, with the function that opens it again. */
  async close(containerId: string): Promise<() => void> {
    const gate = this.#gate(containerId);
    while (gate.closed) await gate.closed.promise;
    const closed = Promise.withResolvers<void>();
    gate.closed = closed;
    if (gate.inside > 0) {
      await new Promise<void>((resolve) => {
        gate.emptied = resolve;
      });
    }
    gate.emptied = undefined;
    return () => {
      if (gate.closed !== closed) return;
      gate.closed = undefined;
      closed.resolve();
      this.#forget(containerId, gate);
    };
  }

  #gate(containerId: string): Gate {
    const gate = this.#gates.get(containerId) ?? { inside: 0, closed: undefined, emptied: undefined };
    this.#gates.set(containerId, gate);
    return gate;
  }

  #forget(containerId: string, gate: Gate): void {
    if (gate.inside === 0 && !gate.closed) this.#gates.delete(containerId);
  }
}
