/** The directory's entries of sandboxes on their way from this worker, into which a gateway may have written that another worker has it. */
import type { SandboxEntry } from "../../shared/bus/entries.ts";
import type { OwnEntries } from "../store/entries.ts";
import type { SandboxRecord } from "../store/records.ts";

/** How many sandboxes that have left are remembered, for calls of gateways that have not heard of it yet. */
const leftMax = 10_000;

/** A gateway has given the sandbox to another worker. */
export class GivenAway extends Error {}

/** Whether it is on its way from this worker, and not to it. */
export const isLeaving = ({ move, worker_id }: Pick<SandboxRecord, "move" | "worker_id">): boolean => move !== undefined && move.from === worker_id;

export class Departures {
  readonly #directory: OwnEntries<SandboxEntry>;
  readonly #left = new Set<string>();

  constructor(directory: OwnEntries<SandboxEntry>) {
    this.#directory = directory;
  }

  /** Whether a sandbox has left since this process started. */
  has(id: string): boolean {
    return this.#left.has(id);
  }

  /** It is here again. */
  forget(id: string): void {
    this.#left.delete(id);
  }

  /** Its copy here is gone. */
  async note(id: string): Promise<void> {
    this.#left.add(id);
    const [oldest] = this.#left;
    if (this.#left.size > leftMax && oldest !== undefined) this.#left.delete(oldest);
    await this.withdraw(id);
  }

  /** Writes an entry in place of the one that is stored, unless that one is given away. @throws {GivenAway}, {SandgateError} `unavailable` */
  async publish(entry: SandboxEntry): Promise<void> {
    const stored = await this.#directory.change(entry.id, ({ moved_to, move }) => {
      if (moved_to !== undefined) throw new GivenAway();
      // What gateways have written of the same move stays.
      return entry.move && move?.id === entry.move.id ? { ...entry, move: { ...move, ...entry.move } } : entry;
    });
    if (stored === undefined) await this.#directory.put(entry.id, entry);
  }

  /** Whether another worker has a sandbox that this one has or had, by what is stored now. */
  async isGiven(id: string): Promise<boolean> {
    return (await this.#directory.read(id))?.moved_to !== undefined;
  }

  /** Removes the entry of a sandbox that another worker has, if that one's own is there. */
  async withdraw(id: string): Promise<void> {
    if ((await this.#directory.read(id))?.handed_over) await this.#directory.delete(id);
  }
}
