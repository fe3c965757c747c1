/** Freezes containers, and coordinates that with commands being started or killed in them. */
import { errors } from "../../../shared/known-errors.ts";
import { faultPoint } from "../../faults.ts";
import { killTree } from "../process/proc.ts";
import type { Container } from "./container.ts";
import { type Frozen, freeze } from "./freezer.ts";
import { Gates } from "./gate.ts";

export class Standstills {
  readonly #gates = new Gates();
  readonly #frozen = new Set<Frozen>();
  /** Subreapers of commands being killed, which must not run again, or their descendants would escape. */
  readonly #ending = new Set<number>();

  /** Waits while the container is frozen. Call the returned function once the command runs or could not be started. */
  enter(containerId: string): Promise<() => void> {
    return this.#gates.enter(containerId);
  }

  /** Kills a process with all its descendants, like `killTree`. */
  async endTree(root: number): Promise<void> {
    this.#ending.add(root);
    try {
      await killTree(root);
    } finally {
      this.#ending.delete(root);
    }
  }

  /**
   * Runs an action while nothing runs in the container.
   *
   * @returns the action's result, and for how long nothing ran.
   * @throws {SandgateError} `conflict` when the container cannot be frozen, `unavailable` when the worker stops meanwhile.
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
      if (!stoodStill) throw errors.stopping("worker");
      return { value, pauseMs: performance.now() - startedAtMs };
    } finally {
      open();
    }
  }

  /** Thaws everything that is frozen; the actions it was frozen for fail. */
  thawAll(): void {
    for (const frozen of this.#frozen) {
      this.#frozen.delete(frozen);
      frozen.thaw();
    }
  }
}
