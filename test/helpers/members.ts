/** Users with accounts, created as on the sign-up page. */
import { randomBytes, randomInt } from "node:crypto";
import { request } from "node:http";
import { BucketWriter } from "../../shared/bus/kv.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import { AccountRecord } from "../../shared/schemas/records.ts";
import { checker } from "../../shared/schemas/validate.ts";
import { connectBus } from "./bus.ts";
import { until } from "./until.ts";

const cookieName = "sandgate_session";

export interface Cookie {
  readonly name: string;
  readonly value: string;
}

/** A user who has signed up, with the session of one browser. */
export class Member {
  readonly url: string;
  readonly email: string;
  readonly password: string;
  readonly accountId: string;
  readonly cookie: Cookie;
  readonly csrfToken: string;

  constructor(parts: { url: string; email: string; password: string; accountId: string; cookie: Cookie; csrfToken: string }) {
    this.url = parts.url;
    this.email = parts.email;
    this.password = parts.password;
    this.accountId = parts.accountId;
    this.cookie = parts.cookie;
    this.csrfToken = parts.csrfToken;
  }

  /** What a page sends with every call. */
  get headers(): Readonly<Record<string, string>> {
    return { cookie: `${this.cookie.name}=${this.cookie.value}`, "x-sandgate-account": this.accountId, "x-csrf-token": this.csrfToken };
  }

  /** A call as the pages make it. @throws {Error} when it is refused. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers = { ...this.headers, "content-type": "application/json" };
    const response = await fetch(this.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** Ends all sandboxes of the account. */
  async clear(): Promise<void> {
    await until(
      "the member's sandboxes are gone",
      async () => (await this.call<{ errors?: unknown[] }>("DELETE", "/v1/sandboxes/delete-all")).errors === undefined,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear();
  }
}

/** An unused e-mail address, and a password. */
export function newcomer(): { email: string; password: string } {
  const word = randomBytes(6).toString("hex");
  return { email: `ada-${word}@example.com`, password: `correct horse ${word}` };
}

/** Signs up and logs in, each time from another loopback address, because accounts made from one address are counted. */
export async function signUp(url: string, name = "Ada Lovelace"): Promise<Member> {
  const { email, password } = newcomer();
  const made = await post(`${url}/v1/auth/signup`, { email, password, name });
  if (made.status !== 200) throw new Error(`signup answered ${made.status}: ${made.body}`);
  return logIn(url, { email, password });
}

/** Logs in, in a browser of its own, or in one that has a cookie already. */
export async function logIn(url: string, { email, password }: Pick<Member, "email" | "password">, cookie = ""): Promise<Member> {
  const { status, body, cookies } = await post(`${url}/v1/auth/login`, { email, password }, cookie);
  if (status !== 200) throw new Error(`login answered ${status}: ${body}`);
  const { account, csrf_token } = JSON.parse(body) as { account: { id: string }; csrf_token: string };
  const value = cookies.map((line) => new RegExp(`^${cookieName}=([^;]+)`).exec(line)?.[1]).find(Boolean);
  if (!value) throw new Error(`login set no session: ${cookies.join(", ")}`);
  return new Member({ url, email, password, accountId: account.id, cookie: { name: cookieName, value }, csrfToken: csrf_token });
}

/** Changes the account as an operator does; resolves when the record is stored. */
export async function changeAccount(natsUrl: string, member: Member, change: Partial<AccountRecord>): Promise<void> {
  const bus = await connectBus(natsUrl, "test-members");
  try {
    const accounts = await BucketWriter.open(bus, buckets.accounts, checker(AccountRecord));
    await accounts.change(member.accountId, (record) => ({ ...record, ...change }));
  } finally {
    await bus.close();
  }
}

/** Node's fetch cannot choose the address that it comes from. */
function post(url: string, body: unknown, cookie = ""): Promise<{ status: number; body: string; cookies: string[] }> {
  const localAddress = `127.${randomInt(1, 255)}.${randomInt(0, 255)}.${randomInt(1, 255)}`;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", localAddress, headers: { "content-type": "application/json", ...(cookie ? { cookie } : {}) } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text, cookies: response.headers["set-cookie"] ?? [] }));
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}
