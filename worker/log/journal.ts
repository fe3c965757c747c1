/**
 * Entries of the execution log on their way to disk, kept in a folder in memory meanwhile. They outlive this process there, so
 * that no command waits until the disk has taken what another sandbox makes it write.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LogEntry } from "../../shared/bus/contract/commands.ts";
import { attempt } from "../../shared/util/attempt.ts";

/** Each takes up to some 20 KB. When there are more, the disk sets the pace. */
const heldMax = 1_000;
const nameLength = 12;

export class LogJournal {
  readonly #dir: string;
  #serial = 0;
  #held = 0;

  /** @param dir a folder in memory of this worker */
  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  }

  /** What an earlier process held when it was killed, oldest first, until `clear`. Nobody has heard of an entry that is not whole. */
  left(): LogEntry[] {
    return this.#names().flatMap((name) => attempt(() => JSON.parse(readFileSync(join(this.#dir, name), "utf8")) as LogEntry) ?? []);
  }

  clear(): void {
    for (const name of this.#names()) rmSync(join(this.#dir, name), { force: true });
  }

  /** Keeps an entry until it is committed, or has failed to be. @returns whether it could be kept */
  hold(entry: LogEntry, committed: Promise<unknown>): boolean {
    if (this.#held >= heldMax) return false;
    const file = join(this.#dir, String(this.#serial++).padStart(nameLength, "0"));
    try {
      writeFileSync(file, JSON.stringify(entry), { mode: 0o600 });
    } catch {
      rmSync(file, { force: true });
      return false;
    }
    this.#held++;
    const release = (): void => {
      this.#held--;
      rmSync(file, { force: true });
    };
    committed.then(release, release);
    return true;
  }

  #names(): string[] {
    return readdirSync(this.#dir).sort();
  }
}
