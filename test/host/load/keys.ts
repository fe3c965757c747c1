/** Makes API keys and revokes them. */
import { setTimeout as sleep } from "node:timers/promises";
import { Caller, type Report } from "./report.ts";

const knownMs = 20_000;

interface Key {
  readonly id: string;
  readonly secret: string;
  revoked: "no" | "told" | "unsure";
}

export class Keys {
  readonly #report: Report;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #known: Key[] = [];
  readonly #checker: Caller;

  private constructor(report: Report, headers: Readonly<Record<string, string>>) {
    this.#report = report;
    this.#checker = new Caller(report, "checker of keys");
    this.#headers = headers;
  }

  /** As a person of a new account. */
  static async signUp(report: Report): Promise<Keys> {
    const [gateway = ""] = report.gateways;
    const login = { email: `load-${process.pid}@example.com`, password: "correct horse battery" };
    const post = (path: string): Promise<Response> =>
      fetch(gateway + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(login) });
    await post("/v1/auth/signup");
    const answer = await post("/v1/auth/login");
    if (!answer.ok) throw new Error(`the log-in was answered ${answer.status}: ${await answer.text()}`);
    const { account, csrf_token } = (await answer.json()) as { account: { id: string }; csrf_token: string };
    const cookie = (answer.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
    return new Keys(report, { cookie, "x-sandgate-account": account.id, "x-csrf-token": csrf_token });
  }

  /** @param name is unique */
  async client(name: string): Promise<void> {
    const caller = new Caller(this.#report, name);
    while (!this.#report.isOver) {
      const key = await this.#make(caller);
      if (key && caller.random() < 0.5) await this.#revoke(caller, key);
      await sleep(500);
    }
  }

  async #make(caller: Caller): Promise<Key | undefined> {
    const body = { name: `key ${this.#known.length}` };
    const told = await caller.call<{ id: string; key: string }>("POST", "/v1/account/keys", [201], { headers: this.#headers, body });
    if (told.is !== "done") return undefined;
    const key: Key = { id: told.body.id, secret: told.body.key, revoked: "no" };
    this.#known.push(key);
    await this.#use(caller, key);
    return key;
  }

  /** The other gateways know it soon: they hear of it by their watches, which may have to begin anew. */
  async #use(caller: Caller, { id, secret }: Key): Promise<void> {
    for (const deadline = Date.now() + knownMs; ; await sleep(200)) {
      const used = await caller.call("GET", "/v1/account", [200, 401], { headers: { "x-api-key": secret } });
      if (used.is !== "done" || used.status === 200) return;
      if (Date.now() > deadline) return this.#report.fault(`${id} was made, and is not known`);
    }
  }

  async #revoke(caller: Caller, key: Key): Promise<void> {
    const told = await caller.call("DELETE", `/v1/account/keys/${key.id}`, [200], { headers: this.#headers });
    key.revoked = told.is === "done" ? "told" : told.is === "unsure" ? "unsure" : "no";
  }

  /** Which keys are not as clients were told, by each gateway. */
  async verify(): Promise<string[]> {
    const found: string[] = [];
    for (const { id, secret, revoked } of this.#known) {
      for (const at of this.#report.gateways) {
        const told = await this.#checker.call("GET", "/v1/account", [200, 401], { headers: { "x-api-key": secret }, at });
        const [is, should] = [told.is === "done" ? told.status : 0, { no: [200], told: [401], unsure: [200, 401] }[revoked]];
        if (!should.includes(is)) found.push(`${id} (revoked: ${revoked}) gets ${is} at ${at}`);
      }
    }
    return found;
  }
}
