/** Signing up, logging in, keys and usage: one installation with two gateways behind a proxy for all of them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fixture } from "../../helpers/fixture.ts";
import { startStack } from "../../helpers/stack.ts";
import { Visitor } from "../../helpers/visitor.ts";
import { browserTests } from "./browsers.ts";
import { keyTests } from "./keys.ts";
import { logInTests } from "./log-in.ts";
import { passwordTests } from "./passwords.ts";
import { signUpTests } from "./sign-up.ts";
import { usageTests } from "./usage.ts";
import { limits, type World } from "./world.ts";

const secrets = new Set<string>();
const world: World = {
  get stack() {
    return stack;
  },
  visitor: (gateway = 0) => new Visitor(stack.urls[gateway] as string, secrets),
  async member(gateway = 0) {
    const visitor = world.visitor(gateway);
    assert.equal((await visitor.signUp()).status, 200);
    return visitor;
  },
};

const stack = await fixture(
  startStack({
    name: "accounts",
    gateways: 2,
    settings: {
      SANDGATE_TRUST_PROXY: "true",
      SANDGATE_ACCESS_LOG: "true",
      SANDGATE_FIRST_ACCOUNT_OPERATOR: "true",
      SANDGATE_SIGN_UPS_PER_ADDRESS: String(limits.signUps),
      SANDGATE_AUTH_FAILURES_PER_ADDRESS: String(limits.addressFailures),
      SANDGATE_LOGIN_FAILURES_PER_ACCOUNT: String(limits.accountFailures),
    },
  }),
);

describe("sign-up", () => signUpTests(world));
describe("log-in", () => logInTests(world));
describe("passwords", () => passwordTests(world));
describe("browsers", () => browserTests(world));
describe("keys", () => keyTests(world));
describe("usage", () => usageTests(world));

// Last, when all of the above has been logged.
describe("logs", () => {
  test("no password, key, cookie or token is in any log line", () => {
    const lines = [...stack.gateways, ...stack.workers, stack.nats].flatMap((part) => part.lines);
    assert.ok(lines.some((line) => line.includes('"event":"audit"') && line.includes("POST /v1/auth/login")));
    assert.ok(secrets.size > 50, String(secrets.size));
    for (const secret of secrets) for (const line of lines) assert.ok(!line.includes(secret) && !line.includes(encodeURIComponent(secret)), line);
    for (const line of lines) assert.doesNotMatch(line, /scrypt\$/);
  });

  test("a key in a URL is not in the log of accesses", () => {
    const lines = stack.gateways.flatMap((part) => part.lines).filter((line) => line.includes('"event":"access"'));
    assert.ok(lines.some((line) => line.includes("api_key=[redacted]")));
    assert.ok(!lines.some((line) => /api_key=(?!\[redacted\])/.test(line)));
  });

  test("an audit line says who did what to what", () => {
    const lines = stack.gateways.flatMap((part) => part.lines).filter((line) => line.includes('"event":"audit"'));
    const made = lines.map((line) => JSON.parse(line)).find(({ action, result }) => action === "POST /v1/account/keys" && result === "ok");
    assert.match(made.target, /^key_/);
    assert.match(made.account, /^acct_/);
    assert.equal(made.by, "browser");
    assert.match(made.address, /^198\.18\.\d+\.\d+$/, "the client's address, as the proxy says it");
    const signed = lines.map((line) => JSON.parse(line)).find(({ action, result }) => action === "POST /v1/auth/signup" && result === "ok");
    assert.equal(signed.account, signed.target);
  });
});
