/** Freezes containers, and keeps new commands out of them meanwhile. */

import { faultPoint } from "../../../shared/faults.ts";
import { errors } from "../../../shared/known-errors.ts";
import { killTree } from "../process/proc.ts";
import type { Container } from "./container.ts";
import { type Frozen, freeze } from "./freezer.ts";

/** The way into a container. */
interface Gate {
  /** Commands being started. */
  inside: number;
  /** Resolves when the gate opens again; undefined while it is open. */
  closed: PromiseWithResolvers<void> | undefined;
  /** Called when the last command being started runs. */
  emptied: (() => void) | undefined;
}

export class Standstills {
  readonly #gates = new Map<string, Gate>();
  readonly #frozen = new Set<Frozen>();
  /** Containers that stand still until `release`. */
  readonly #held = new Map<string, { readonly frozen: Frozen; readonly open: () => void }>();
  /** Subreapers of commands being killed, which must not run again, or their descendants would escape. */
  readonly #ending = new Set<number>();

  /** Waits while the container is frozen. Call the returned function once the command runs or could not be started. */
  async enter(containerId: string): Promise<() => void> {
    let gate = this.#gate(containerId);
    for (; gate.closed; gate = this.#gate(containerId)) await gate.closed.promise;
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

  /** Kills a process with all its descendants, like `killTree`. */
  async endTree(root: number): Promise<void> {
    this.#ending.add(root);
    try {
      await killTree(root);
    } finally {
      this.#ending.delete(root);
    }
  }

  /** From now on nothing runs in the container, and no command is started there. @throws {SandgateError} `conflict` when it cannot be frozen */
  hold(container: Container): Promise<void>;
  /** The same after an action, during which no command is started. @param action is given what has everything stand still that is about to go on */
  hold<T>(container: Container, action: (stand: () => void) => Promise<T>): Promise<T>;
  async hold(container: Container, action: (stand: () => void) => Promise<unknown> = async () => {}): Promise<unknown> {
    const open = await this.close(container.id);
    const freezer = container.group?.freezer;
    try {
      const result = await action(() => freezer?.freeze());
      this.#held.set(container.id, { frozen: await freeze(container, (pid) => this.#ending.has(pid)), open });
      return result;
    } catch (error) {
      freezer?.thaw();
      open();
      throw error;
    }
  }

  /** Lets a container that is held go on. */
  release(containerId: string): void {
    const held = this.#held.get(containerId);
    this.#held.delete(containerId);
    held?.frozen.thaw();
    held?.open();
  }

  /**
   * Runs an action while nothing runs in the container.
   *
   * @returns the action's result, and for how long nothing ran.
   * @throws {SandgateError} `conflict` when the container cannot be frozen, `unavailable` when the worker stops meanwhile.
   */
  async during<T>(container: Container, action: () => Promise<T>): Promise<{ value: T; pauseMs: number }> {
    if (this.#held.has(container.id)) return { value: await action(), pauseMs: 0 };
    const open = await this.close(container.id);
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
    for (const containerId of [...this.#held.keys()]) this.release(containerId);
    for (const frozen of this.#frozen) {
      this.#frozen.delete(frozen);
      frozen.thaw();
    }
  }

  /** Closes the gate. Resolves when no command is being started any more, with the function that opens it again. */
  async close(containerId: string): Promise<() => void> {
    let gate = this.#gate(containerId);
    for (; gate.closed; gate = this.#gate(containerId)) await gate.closed.promise;
    const closed = Promise.withResolvers<void>();
    gate.closed = closed;
    if (gate.inside > 0) {
      await new Promise<void>((resolve) => {
        gate.emptied = resolve;
      });
    }
    gate.emptied = undefined;
    return () => {
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
