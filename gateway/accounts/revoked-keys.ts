/** Revoked keys are forgotten after a time: by one gateway for all of them, a few at a time. */

import type { KeyRecord } from "../../shared/schemas/records.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { forgetKey, isActive } from "./keys.ts";
import type { Records } from "./records.ts";

const turnMs = 10_000;
/** Of all keys so many are looked at in a turn, and so many of those forgotten. */
const lookedAtMax = 10_000;
const forgottenMax = 100;

export class RevokedKeys {
  readonly #records: Records;
  readonly #keepMs: number;
  readonly #isMine: () => boolean;
  readonly #log: Logger;
  /** Goes on where the last turn has stopped. */
  #rest: Iterator<[string, KeyRecord]> | undefined;
  #isBusy = false;

  /**
   * @param keepMs how long after its revocation a key is remembered
   * @param isMine whether this is the gateway that does it
   */
  constructor(records: Records, keepMs: number, isMine: () => boolean, log: Logger) {
    this.#records = records;
    this.#keepMs = keepMs;
    this.#isMine = isMine;
    this.#log = log;
  }

  /** From now on, until the process ends. */
  start(): void {
    every(turnMs, this.#log, "revoked keys could not be forgotten", () => this.turn()).unref();
  }

  /** One slice of the work; nothing while the last one goes on. */
  async turn(): Promise<void> {
    if (this.#isBusy || !this.#isMine()) return;
    this.#isBusy = true;
    try {
      for (const [hash, key] of this.#next()) await forgetKey(this.#records, hash, key);
    } finally {
      this.#isBusy = false;
    }
  }

  #next(): [string, KeyRecord][] {
    const found: [string, KeyRecord][] = [];
    this.#rest ??= this.#records.keys.entries();
    for (let looked = 0; looked < lookedAtMax && found.length < forgottenMax; looked++) {
      const { done, value } = this.#rest.next();
      if (done) {
        this.#rest = undefined;
        break;
      }
      const [, key] = value;
      if (!isActive(key) && (key.revoked_at_ms ?? 0) + this.#keepMs <= Date.now()) found.push(value);
    }
    return found;
  }
}
