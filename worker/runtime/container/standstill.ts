/** Containers that stand still for a while, and the commands that are started or ended in them meanwhile. */
import { SandgateError } from "../../../shared/errors.ts";
import { faultPoint } from "../../faults.ts";
import { killTree } from "../process/proc.ts";
import type { Container } from "./container.ts";
import { type Frozen, freeze } from "./freezer.ts";
import { Gates } from "./gate.ts";

export class Standstills {
  readonly #gates = new Gates();
  readonly #frozen = new Set<Frozen>();
  /** Subreapers of commands that are being ended, which must not run again: what they hold together would come free. */
  readonly #ending = new Set<number>();

  /** Waits while the container stands still. What is returned must be called once the command runs, or could not be started. */
  enter(containerId: string): Promise<() => void> {
    return this.#gates.enter(containerId);
  }

  /** Ends a process with all of its descendants, as `killTree` does. */
  async endTree(root: number): Promise<void> {
    this.#ending.add(root);
    try {
      await killTree(root);
    } finally {
      this.#ending.delete(root);
    }
  }

  /**
   * Does something while nothing runs in the container.
   *
   * @returns what it returns, and for how long nothing ran.
   * @throws {SandgateError} `conflict` when it cannot be stood still, `unavailable` when the worker stops meanwhile.
   */
  async during<T>(container: Container, action: () => Promise<T>): Promise<{ value: T; pauseMs: number }> {
    const open = await this.#gates.close(container.id);
    try {
      const startedAtMs = performance.now();
      const frozen = await freeze(container, (pid) => this.#ending.has(pid));
      this.#frozen.add(frozen);
      let stoodStill = false;
      let value: T;
      try {
        faultPoint("snapshot.frozen");
        value = await action();
      } finally {
        stoodStill = this.#frozen.delete(frozen);
        if (stoodStill) frozen.thaw();
      }
      if (!stoodStill) throw new SandgateError("unavailable", "the worker is shutting down");
      return { value, pauseMs: performance.now() - startedAtMs };
    } finally {
      open();
    }
  }

  /** Sets everything going that stands still; what it stands still for fails then. */
  thawAll(): void {
    for (const frozen of this.#frozen) {
      this.#frozen.delete(frozen);
      frozen.thaw();
    }
  }
}
