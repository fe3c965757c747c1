/** Sandboxes of one test file, removed at its end, and the processes of their commands as the host sees them. */
import { randomBytes } from "node:crypto";
import { processIds } from "../../shared/util/proc.ts";
import { environmentOf } from "../../worker/runtime/process/proc.ts";
import type { Api } from "./api.ts";
import { until } from "./until.ts";

export class Sandboxes implements AsyncDisposable {
  readonly #api: Api;
  readonly #made: Promise<string>[] = [];

  constructor(api: Api) {
    this.#api = api;
  }

  make(options: Record<string, unknown> = {}): Promise<string> {
    const id = this.#api.create(options);
    this.#made.push(id);
    return id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ids = (await Promise.allSettled(this.#made)).flatMap((made) => (made.status === "fulfilled" ? [made.value] : []));
    await Promise.all(ids.map((id) => this.#api.delete(id)));
  }
}

/** Marks a command by a variable in its environment, which everything that it starts inherits, daemonised or not. */
export class Mark {
  readonly #value = `mark-${randomBytes(12).toString("hex")}`;

  /** To be given to the command as its `env`. */
  get env(): Record<string, string> {
    return { TEST_MARK: this.#value };
  }

  /** Host pids of the marked processes that live. */
  living(): number[] {
    return processIds().filter((pid) => environmentOf(pid).some((entry) => entry.includes(this.#value)));
  }

  /** Resolves when none is left. */
  async gone(): Promise<void> {
    await until("all processes of the command are gone", () => this.living().length === 0);
  }
}
