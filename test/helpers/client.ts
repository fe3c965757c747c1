/** The client library with its own account on the shared installation. */
import { Sandgate } from "../../shared/client/index.ts";
import { Accounts, type TestAccount } from "./accounts.ts";
import { sharedStack } from "./shared.ts";

export interface ClientWorld extends AsyncDisposable {
  readonly account: TestAccount;
  readonly client: Sandgate;
}

export async function openClient(): Promise<ClientWorld> {
  const accounts = await Accounts.open(sharedStack());
  const account = await accounts.make();
  const { apiKey, url: baseUrl } = account.api;
  return { account, client: new Sandgate({ apiKey, baseUrl }), [Symbol.asyncDispose]: () => accounts[Symbol.asyncDispose]() };
}
