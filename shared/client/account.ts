/** What a key may know of its account. Making and revoking keys is for people, on the web page. */
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";
import { List } from "./pages.ts";
import type { Account, AccountUsage, ApiKey, PageOf } from "./types.ts";

/** `client.account`. */
export class AccountCalls {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get(options: CallOptions = {}): Promise<Account> {
    return this.#connection.get("/v1/account", options);
  }

  /** All of them, from whatever pages. */
  keys(options: CallOptions = {}): Promise<ApiKey[]> {
    return new List((query) => this.#connection.get<PageOf<ApiKey>>("/v1/account/keys", options, { ...query })).all();
  }

  usage(options: CallOptions = {}): Promise<AccountUsage> {
    return this.#connection.get("/v1/account/usage", options);
  }
}
