/** Who calls: API key to account, from memory. */
import { hash } from "node:crypto";
import { SandgateError } from "../shared/errors.ts";
import type { BucketMirror } from "../shared/kv.ts";
import type { AccountRecord, KeyRecord } from "../shared/schemas/messages.ts";

/** An authenticated caller. */
export interface Caller {
  readonly account: AccountRecord;
  readonly key: KeyRecord;
}

/** What is stored instead of a key: its SHA-256 in hex. */
export function hashKey(apiKey: string): string {
  return hash("sha256", apiKey, "hex");
}

/** The part of a key that may be shown and logged. */
export function keyPrefix(apiKey: string): string {
  return apiKey.slice(0, 10);
}

export class Authenticator {
  readonly #accounts: BucketMirror<AccountRecord>;
  readonly #keys: BucketMirror<KeyRecord>;

  constructor(accounts: BucketMirror<AccountRecord>, keys: BucketMirror<KeyRecord>) {
    this.#accounts = accounts;
    this.#keys = keys;
  }

  /** @throws {SandgateError} `unauthorized` with one of three messages, `forbidden` for a suspended account. */
  authenticate(header: string, query: string): Caller {
    const apiKey = header || (query.includes("api_key=") ? (new URLSearchParams(query).get("api_key") ?? "") : "");
    if (!apiKey) throw new SandgateError("unauthorized", "Missing API key. Include it in the x-api-key header.");
    // Looked up by hash: how long that takes tells nothing about any key.
    const key = this.#keys.get(hashKey(apiKey));
    const account = key && this.#accounts.get(key.account_id);
    if (!key || !account) throw new SandgateError("unauthorized", "Invalid API key. Check that it is correct and active.");
    if (key.revoked_at_ms !== undefined) throw new SandgateError("unauthorized", "This API key has been revoked.");
    if (account.suspended) throw new SandgateError("forbidden", "This account is suspended.");
    return { account, key };
  }
}
