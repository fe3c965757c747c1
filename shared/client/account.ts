/** What a key may know of its account. Making and revoking keys is for people, on the web page. */
import type { Call, CallOptions, Connection } from "./connection.ts";
import { List } from "./pages.ts";
import type { Account, AccountUsage, ApiKey, PageOf } from "./types.ts";

/** `client.account`. */
export class AccountCalls {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get(options: CallOptions = {}): Promise<Account> {
    return this.#read("/v1/account", options);
  }

  /** All of them, from whatever pages. */
  keys(options: CallOptions = {}): Promise<ApiKey[]> {
    return new List((query) => this.#read<PageOf<ApiKey>>("/v1/account/keys", options, { ...query })).all();
  }

  usage(options: CallOptions = {}): Promise<AccountUsage> {
    return this.#read("/v1/account/usage", options);
  }

  #read<T>(path: string, options: CallOptions, query: NonNullable<Call["query"]> = {}): Promise<T> {
    return this.#connection.json({ method: "GET", path, query, repeatable: true, options });
  }
}
