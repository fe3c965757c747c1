/** What a key may know of its account. Making and revoking keys is for people, on the web page. */
import type { CallOptions, Connection } from "./connection.ts";
import type { Account, AccountUsage, ApiKey } from "./types.ts";

/** `client.account`. */
export class AccountCalls {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get(options: CallOptions = {}): Promise<Account> {
    return this.#read("/v1/account", options);
  }

  async keys(options: CallOptions = {}): Promise<ApiKey[]> {
    return (await this.#read<{ data: ApiKey[] }>("/v1/account/keys", options)).data;
  }

  usage(options: CallOptions = {}): Promise<AccountUsage> {
    return this.#read("/v1/account/usage", options);
  }

  #read<T>(path: string, options: CallOptions): Promise<T> {
    return this.#connection.json({ method: "GET", path, repeatable: true, options });
  }
}
