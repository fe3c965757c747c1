/** A user with a browser: keeps its cookie and token, and has its own address behind the proxy. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type Answer, Api } from "./api.ts";

/** The answer to signing up and logging in. */
export interface Entered {
  readonly account: {
    readonly id: string;
    readonly email: string | null;
    readonly name: string;
    readonly tier: string;
    readonly operator: boolean;
    readonly created_at: string;
    readonly limits: { readonly requests_per_minute: number; readonly burst: number; readonly sandboxes: number };
  };
  readonly csrf_token: string;
  readonly features: readonly string[];
  readonly keys_max: number;
}

export interface MadeKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly key: string;
}

/** Each has an address that no other visitor of the same test file has. */
let visitors = 0;

export class Visitor {
  readonly url: string;
  /** What must never be seen in a log. */
  readonly secrets: Set<string>;
  readonly email = `ada-${randomBytes(6).toString("hex")}@example.com`;
  password = `secret ${randomBytes(12).toString("hex")}`;
  address = `198.18.${Math.floor(++visitors / 250)}.${1 + (visitors % 250)}`;
  /** Of the session. */
  cookie = "";
  /** What shows that this browser has logged in before. */
  device = "";
  csrfToken = "";
  /** That its pages belong to. */
  accountId = "";

  constructor(url: string, secrets = new Set<string>()) {
    this.url = url;
    this.secrets = secrets;
    secrets.add(this.password);
  }

  /** The same browser at another gateway. */
  at(url: string): Visitor {
    return Object.assign(new Visitor(url, this.secrets), {
      ...{ cookie: this.cookie, device: this.device, address: this.address },
      ...{ csrfToken: this.csrfToken, accountId: this.accountId },
    });
  }

  async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer<T>> {
    const own = {
      "x-forwarded-for": this.address,
      ...(this.cookie || this.device ? { cookie: ["theme=dark", this.cookie, this.device].filter(Boolean).join("; ") } : {}),
      ...(this.accountId ? { "x-sandgate-account": this.accountId } : {}),
      ...(method === "GET" || !this.csrfToken ? {} : { "x-csrf-token": this.csrfToken }),
    };
    const answer = await new Api({ url: this.url, apiKey: "" }).call<T>(method, path, body, { ...own, ...headers });
    this.#keep(answer as Answer);
    return answer;
  }

  /** Asks for an account. */
  register(body: Record<string, unknown> = {}): Promise<Answer<{ message: string }>> {
    return this.call("POST", "/v1/auth/signup", { email: this.email, password: this.password, ...body });
  }

  /** Makes an account and logs in, as the page does. */
  async signUp(body: Record<string, unknown> = {}): Promise<Answer<Entered>> {
    const { email = this.email, password = this.password } = body as { email?: string; password?: string };
    const answer = await this.register(body);
    return answer.status === 200 ? this.logIn(email, password) : (answer as unknown as Answer<Entered>);
  }

  logIn(email = this.email, password = this.password): Promise<Answer<Entered>> {
    this.secrets.add(password);
    return this.call<Entered>("POST", "/v1/auth/login", { email, password });
  }

  /** Makes an API key; the browser must be logged in. */
  async makeKey(name?: string): Promise<MadeKey> {
    const { status, body } = await this.call<MadeKey>("POST", "/v1/account/keys", name === undefined ? {} : { name });
    assert.equal(status, 201, JSON.stringify(body));
    this.secrets.add(body.key);
    return body;
  }

  #keep({ headers, body, status }: Answer): void {
    for (const line of headers.getSetCookie()) {
      const [pair = ""] = line.split(";", 1);
      if (pair.startsWith("sandgate_device=")) this.device = pair;
      else this.cookie = pair;
    }
    if (status >= 300) return;
    if (typeof body.csrf_token === "string") this.csrfToken = body.csrf_token;
    const { id } = (body.account ?? {}) as { id?: unknown };
    if (typeof id === "string") this.accountId = id;
    for (const secret of [this.cookie.split("=")[1], this.device.split("=")[1], this.csrfToken]) if (secret) this.secrets.add(secret);
  }
}
