/** Activity of accounts in the last hour, per minute, for the charts. Kept in memory only: a restart clears it. */

import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";
import type { SandboxDirectory } from "../fleet/sandboxes.ts";

/** The activity of one account in one minute. */
export interface Minute {
  /** Minutes since the Unix epoch. */
  readonly minute: number;
  requests: number;
  refused: number;
  /** The most sandboxes seen at one time. */
  sandboxes: number;
}

export const minuteMs = 60_000;
const minutesKept = 60;
const sampleMs = 10_000;

export class AccountActivity {
  readonly #directory: SandboxDirectory;
  readonly #accounts = new Map<string, Minute[]>();
  readonly #timer: NodeJS.Timeout;

  constructor(directory: SandboxDirectory, log: Logger) {
    this.#directory = directory;
    this.#timer = every(sampleMs, log, "could not count the sandboxes of accounts", () => this.#sample()).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Counts one call of an account. */
  count(caller: Caller, granted: boolean): void {
    const now = this.#now(caller.account.id);
    now.requests++;
    if (!granted) now.refused++;
  }

  /** The minutes in which the account was active, oldest first. */
  minutesOf(accountId: string): readonly Minute[] {
    return this.#accounts.get(accountId) ?? [];
  }

  #now(accountId: string): Minute {
    const minute = Math.floor(Date.now() / minuteMs);
    let minutes = this.#accounts.get(accountId);
    if (!minutes) {
      minutes = [];
      this.#accounts.set(accountId, minutes);
    }
    let last = minutes.at(-1);
    if (last?.minute !== minute) {
      last = { minute, requests: 0, refused: 0, sandboxes: 0 };
      minutes.push(last);
      if (minutes.length > minutesKept) minutes.shift();
    }
    return last;
  }

  #sample(): void {
    for (const [accountId, count] of this.#directory.countsByAccount()) {
      const now = this.#now(accountId);
      now.sandboxes = Math.max(now.sandboxes, count);
    }
    const oldest = Math.floor(Date.now() / minuteMs) - minutesKept;
    for (const [accountId, minutes] of this.#accounts) if ((minutes.at(-1)?.minute ?? 0) < oldest) this.#accounts.delete(accountId);
  }
}
