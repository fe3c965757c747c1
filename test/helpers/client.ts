/** The client library with an account of its own on the shared installation, which is cleared at the end. */
import { after, before } from "node:test";
import { Sandgate } from "../../shared/client/index.ts";
import { Accounts, type TestAccount } from "./accounts.ts";
import { sharedStack } from "./shared.ts";

/** To be made at the top of a test file. */
export class ClientWorld {
  /** For hooks, which may run beside each other. Tests use the members. */
  readonly ready: Promise<this>;
  #account: TestAccount | undefined;
  #client: Sandgate | undefined;

  constructor() {
    const opening = Accounts.open(sharedStack());
    this.ready = opening.then((accounts) => this.#fill(accounts));
    before(() => this.ready);
    after(async () => (await opening).close());
  }

  get account(): TestAccount {
    return this.#account as TestAccount;
  }

  get client(): Sandgate {
    return this.#client as Sandgate;
  }

  async #fill(accounts: Accounts): Promise<this> {
    this.#account = await accounts.make();
    const { apiKey, url: baseUrl } = this.#account.api;
    this.#client = new Sandgate({ apiKey, baseUrl });
    return this;
  }
}
