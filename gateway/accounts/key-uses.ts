/** Records when keys were last used, at most once a minute per key across all gateways. */

import type { BucketMirror } from "../../shared/bus/mirror.ts";
import type { KeyUse } from "../../shared/schemas/records.ts";
import type { Logger } from "../../shared/util/log.ts";
import type { Caller } from "../call.ts";

const everyMs = 60_000;
const rememberedMax = 10_000;

export class KeyUses {
  readonly #uses: BucketMirror<KeyUse>;
  readonly #log: Logger;
  /** When this gateway last wrote each key's use. */
  readonly #notedAtMs = new Map<string, number>();

  constructor(uses: BucketMirror<KeyUse>, log: Logger) {
    this.#uses = uses;
    this.#log = log;
  }

  /** Records a use of the caller's key. */
  note({ key }: Caller): void {
    if (!key) return;
    const now = Date.now();
    if (now - (this.#notedAtMs.get(key.id) ?? 0) < everyMs) return;
    if (this.#notedAtMs.size >= rememberedMax) this.#notedAtMs.clear();
    this.#notedAtMs.set(key.id, now);
    if (now - (this.#uses.get(key.id)?.used_at_ms ?? 0) < everyMs) return;
    this.#uses.put(key.id, { used_at_ms: now }).catch((err) => this.#log.debug({ err }, "could not record the use of a key"));
  }
}
