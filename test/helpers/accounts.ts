/** Creates accounts and keys as an operator would: as records in the buckets that every gateway watches. */
import { randomBytes } from "node:crypto";
import { hashKey, keyPrefix } from "../../gateway/accounts/keys.ts";
import { BucketWriter } from "../../shared/bus/kv.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import { AccountRecord, KeyRecord } from "../../shared/schemas/records.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { newId } from "../../shared/util/ids.ts";
import { Api } from "./api.ts";
import { connectBus } from "./bus.ts";
import { until } from "./until.ts";

interface Installation {
  readonly url: string;
  /** All gateways, if there are several. */
  readonly urls?: readonly string[];
  readonly natsUrl: string;
}

/** What an operator can set for an account or a key. */
type Allowed = Pick<KeyRecord, "tier" | "limits">;

export interface TestAccount {
  readonly id: string;
  readonly api: Api;
  /** Adds another key. */
  addKey(allowed?: Allowed): Promise<Api>;
  /** Marks a key as revoked; resolves when the record is stored. */
  revoke(apiKey: string): Promise<void>;
  /** Resolves when the record is stored. */
  suspend(): Promise<void>;
}

/** The accounts that one test file creates. At the end, their sandboxes, snapshots and records are removed. */
export class Accounts {
  readonly #stack: Installation;
  readonly #bus: Bus;
  readonly #accounts: BucketWriter<AccountRecord>;
  readonly #keys: BucketWriter<KeyRecord>;
  readonly #made: AccountRecord[] = [];
  readonly #hashes: string[] = [];

  private constructor(stack: Installation, bus: Bus, accounts: BucketWriter<AccountRecord>, keys: BucketWriter<KeyRecord>) {
    this.#stack = stack;
    this.#bus = bus;
    this.#accounts = accounts;
    this.#keys = keys;
  }

  static async open(stack: Installation): Promise<Accounts> {
    const bus = await connectBus(stack.natsUrl, "test-accounts");
    const accounts = await BucketWriter.open(bus, buckets.accounts, checker(AccountRecord));
    return new Accounts(stack, bus, accounts, await BucketWriter.open(bus, buckets.keys, checker(KeyRecord)));
  }

  /** Creates an account with one key, with no limits unless given. Resolves when all gateways know both. */
  async make(name = "tester", { tier = "enterprise", limits }: Allowed = {}): Promise<TestAccount> {
    const record: AccountRecord = { id: newId("account"), name, tier, ...(limits ? { limits } : {}), suspended: false, created_at_ms: Date.now() };
    await this.#accounts.put(record.id, record);
    const api = await this.#addKey(record.id);
    this.#made.push(record);
    return {
      id: record.id,
      api,
      addKey: (allowed) => this.#addKey(record.id, allowed),
      revoke: (apiKey) => this.#revoke(apiKey),
      suspend: () => this.#accounts.put(record.id, { ...record, suspended: true }),
    };
  }

  /** The id of a key, under which its limits are counted. */
  async idOfKey(apiKey: string): Promise<string> {
    const record = await this.#keys.read(hashKey(apiKey));
    if (!record) throw new Error("there is no such key");
    return record.id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      // The test's own installation is removed as a whole.
      if (this.#stack.urls) return;
      await Promise.all(this.#made.map((record) => this.#remove(record)));
      await Promise.all(this.#hashes.map((hash) => this.#keys.delete(hash)));
    } finally {
      await this.#bus.close();
    }
  }

  async #remove(record: AccountRecord): Promise<void> {
    // A test may have suspended the account or revoked its key.
    await this.#accounts.put(record.id, record);
    const cleaner = await this.#addKey(record.id, { tier: "enterprise" });
    await until(
      "its sandboxes are gone",
      async () => (await cleaner.call<{ errors?: unknown[] }>("DELETE", "/v1/sandboxes/delete-all")).body.errors === undefined,
    );
    await until("its snapshots are gone", async () => (await cleaner.call("DELETE", "/v1/snapshots/delete-all")).body.errors === undefined);
    await this.#accounts.delete(record.id);
  }

  async #addKey(accountId: string, allowed: Allowed = {}): Promise<Api> {
    const api = await this.#storeKey(accountId, allowed);
    // Gateways see keys in the order in which they were stored, so checking for a later key spends none of this key's calls.
    const { apiKey } = await this.#storeKey(accountId, { tier: "enterprise" });
    for (const url of this.#stack.urls ?? [this.#stack.url]) {
      const later = new Api({ url, apiKey });
      await until("the gateway knows the key", async () => (await later.call("GET", "/v1/sandboxes/list")).status === 200);
    }
    await this.#keys.delete(hashKey(apiKey));
    return api;
  }

  async #storeKey(accountId: string, allowed: Allowed): Promise<Api> {
    const apiKey = `sg_${randomBytes(30).toString("base64url")}`;
    const record = { id: newId("key"), account_id: accountId, name: "test", prefix: keyPrefix(apiKey), created_at_ms: Date.now(), ...allowed };
    await this.#keys.put(hashKey(apiKey), record);
    this.#hashes.push(hashKey(apiKey));
    return new Api({ url: this.#stack.url, apiKey });
  }

  async #revoke(apiKey: string): Promise<void> {
    const record = await this.#keys.read(hashKey(apiKey));
    if (!record) throw new Error("there is no such key");
    await this.#keys.put(hashKey(apiKey), { ...record, revoked_at_ms: Date.now() });
  }
}
