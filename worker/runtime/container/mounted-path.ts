/** Something that each sandbox has for itself in a folder of the worker in memory, and finds mounted in its container. */
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Whoever is in the sandbox, with ids of its own, passes the folder. */
const passable = 0o711;
/** What is in it, for everybody in the sandbox. */
export const readable = 0o644;

export abstract class MountedPath<For = void> {
  readonly #dir: string;

  /** @param dir is made when it is needed */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /** That of a sandbox on the host. */
  of(sandboxId: string): string {
    return join(this.#dir, sandboxId);
  }

  /** Makes it for a container that starts. To be called before anything runs in the container. */
  abstract make(sandboxId: string, what: For): void | Promise<void>;

  remove(sandboxId: string): void | Promise<void> {
    rmSync(this.of(sandboxId), { recursive: true, force: true });
  }

  protected get dir(): string {
    return this.#dir;
  }
}

export function makePassable(dir: string): void {
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, passable);
}
