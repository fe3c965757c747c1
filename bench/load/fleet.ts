/** The sandboxes of one load. Their names begin with its label, by which they are found and removed, and no others ever are. */
import { messageOf } from "../../shared/cli/failures.ts";
import { NotFoundError } from "../../shared/client/errors.ts";
import type { Sandgate } from "../../shared/client/index.ts";
import { isUncertain } from "../../shared/client/retry.ts";
import type { Sandbox, SandboxHandle } from "../../shared/client/sandbox.ts";
import { pause } from "../../shared/waiting.ts";
import { inParallel } from "../measure.ts";
import type { Workload } from "./workload.ts";

const removedAtOnce = 8;
const pauseMs = 500;
/** For creates whose answer was lost: how long their sandboxes may still appear. */
const uncertainMs = 5_000;

export class Fleet {
  /** What the names of its sandboxes begin with. */
  readonly label: string;
  readonly #remover: Sandgate;
  readonly #look: NonNullable<Workload["sandbox"]>;
  /** Sandboxes that exist, as far as this process knows. */
  readonly #known = new Set<string>();
  readonly #creating = new Set<Promise<unknown>>();
  /** Until when sandboxes may appear whose creation seemed to fail. */
  #uncertainUntilMs = 0;
  #serial = 0;

  /** @param remover makes the calls of the removal */
  constructor(runId: string, remover: Sandgate, look: Workload["sandbox"] = {}) {
    this.label = `load-${runId}-`;
    this.#remover = remover;
    this.#look = look;
  }

  /** How many sandboxes exist now. */
  get size(): number {
    return this.#known.size;
  }

  /** Creates a sandbox. @param client makes the call @throws {APIError} */
  async create(client: Sandgate, timeoutMs: number): Promise<Sandbox> {
    const creating = client.sandboxes.create({ ...this.#look, name: `${this.label}${++this.#serial}`, timeoutMs });
    this.#creating.add(creating);
    try {
      const sandbox = await creating;
      this.#known.add(sandbox.id);
      return sandbox;
    } catch (error) {
      if (isUncertain(error)) this.#uncertainUntilMs = Date.now() + uncertainMs;
      throw error;
    } finally {
      this.#creating.delete(creating);
    }
  }

  /** Deletes one sandbox of this load. @throws {APIError} `removeAll` then tries again */
  async delete(sandbox: SandboxHandle): Promise<void> {
    await sandbox.delete().catch((error: unknown) => {
      if (!(error instanceof NotFoundError)) throw error;
    });
    this.#known.delete(sandbox.id);
  }

  /**
   * Removes every sandbox of this load, also those whose creation seemed to fail.
   *
   * @param timeoutMs how long it is tried @returns what is left over: ids, with why
   */
  async removeAll(timeoutMs: number): Promise<string[]> {
    if (this.#serial === 0) return [];
    await Promise.allSettled(this.#creating);
    const deadlineMs = Date.now() + timeoutMs;
    for (;;) {
      const failures = await this.#removeOnce();
      const isOver = failures.length === 0 && Date.now() >= this.#uncertainUntilMs;
      if (isOver || Date.now() >= deadlineMs) return failures;
      await pause(pauseMs);
    }
  }

  /** Removes what there is now. @returns what was there and could not be removed, or what is still there */
  async #removeOnce(): Promise<string[]> {
    const failures: string[] = [];
    try {
      const waiting = [...new Set([...this.#known, ...(await this.#listed())])];
      await inParallel(removedAtOnce, waiting.length, async () => {
        const id = waiting.pop() as string;
        await this.delete(this.#remover.sandbox(id)).catch((error: unknown) => failures.push(`${id} (${messageOf(error)})`));
        return 0;
      });
      // The list says whether they are gone, not the answers to the deletions.
      if (failures.length === 0) failures.push(...(await this.#listed()).map((id) => `${id} (deleted, but still listed)`));
    } catch (error) {
      failures.push(`unknown, the sandboxes named ${this.label}* cannot be listed (${messageOf(error)})`);
    }
    return failures;
  }

  async #listed(): Promise<string[]> {
    const all = await this.#remover.sandboxes.list().all();
    return all.filter(({ name }) => name.startsWith(this.label)).map(({ id }) => id);
  }
}
