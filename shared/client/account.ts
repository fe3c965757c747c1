/** What a key may read about its account. Keys are created and revoked by people, on the web page. */
import type { CallOptions } from "./call-options.ts";
import { Calls } from "./connection.ts";
import { listOf } from "./pages.ts";
import type { Account, AccountUsage, ApiKey } from "./types.ts";

/** `client.account`. */
export class AccountCalls extends Calls {
  get(options: CallOptions = {}): Promise<Account> {
    return this.connection.get("/v1/account", options);
  }

  /** All keys, from all pages. */
  keys(options: CallOptions = {}): Promise<ApiKey[]> {
    return listOf(this.connection, "/v1/account/keys", options, (key: ApiKey) => key).all();
  }

  usage(options: CallOptions = {}): Promise<AccountUsage> {
    return this.connection.get("/v1/account/usage", options);
  }
}
