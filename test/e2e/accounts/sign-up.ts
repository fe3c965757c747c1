/** Making accounts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk, isoTime } from "../../helpers/expect.ts";
import { withSettings } from "../../helpers/resilience.ts";
import { until } from "../../helpers/until.ts";
import type { Entered } from "../../helpers/visitor.ts";
import { limits, urlOf, type World } from "./world.ts";

const neutral = { message: "If this e-mail address is new here, its account is made: log in with the password that you chose" };
const wrong = "Wrong e-mail or password.";
const beta = { requests_per_minute: 60, burst: 60, sandboxes: 10 };

const mistakes: readonly [what: string, body: Record<string, unknown>, message: RegExp][] = [
  ["no e-mail", { email: undefined }, /^Missing required field: email$/],
  ["an e-mail of another type", { email: 7 }, /^email must be an e-mail address/],
  ["an e-mail without @", { email: "ada.example.com" }, /^email must be/],
  ["an e-mail with a space inside", { email: "ada lovelace@example.com" }, /^email must be/],
  ["an e-mail with a line break", { email: "ada@example.com\nbcc: x@y.example" }, /^email must be/],
  ["an e-mail with two @", { email: "a@b@example.com" }, /^email must be/],
  ["an e-mail that is too long", { email: `${"a".repeat(250)}@x.io` }, /^email must be .* 254/],
  ["an enormous e-mail", { email: `${"a".repeat(500_000)}@x.io` }, /^email must be/],
  ["no password", { password: undefined }, /^Missing required field: password$/],
  ["a short password", { password: "123456789" }, /^password must be a string of 10 to 200 characters$/],
  ["a long password", { password: "x".repeat(201) }, /^password must be/],
  ["a password of another type", { password: ["0123456789"] }, /^password must be/],
  ["the e-mail as password", { email: "ada@somewhere.example", password: " ADA@somewhere.example " }, /^password must not be the e-mail address$/],
  ["a long name", { name: "x".repeat(101) }, /^name must be .* 100 characters/],
  ["a name with an escape sequence", { name: "\u001b[31mred" }, /^name must be .* without control characters/],
  ["a name of another type", { name: {} }, /^name must be/],
];

export function signUpTests(world: World): void {
  test("of several first accounts made at the same time one becomes an operator", async () => {
    const made = await Promise.all(Array.from({ length: 4 }, async (_, index) => expectOk(await world.visitor(index % 2).signUp())));
    assert.equal(made.filter(({ account }) => account.operator).length, 1);
    assert.equal(expectOk(await world.visitor().signUp()).account.operator, false);
  });

  test("who has signed up can log in, on every gateway", async () => {
    const visitor = world.visitor();
    const answer = await visitor.signUp({ name: "  Ada Lovelace " });
    const { account, csrf_token, ...rest } = expectOk(answer);
    const { id, created_at, ...shown } = account;
    assert.match(id, /^acct_[0-9a-z]{26}$/);
    assert.match(created_at, isoTime);
    assert.deepEqual(shown, { email: visitor.email, name: "Ada Lovelace", tier: "beta", operator: false, limits: beta });
    assert.ok(csrf_token.length >= 32);
    assert.ok(Array.isArray(rest.features));
    assert.equal(rest.keys_max, 5);
    const [cookie = "", device = "", ...more] = answer.headers.getSetCookie();
    assert.deepEqual(more, []);
    assert.match(device, /^sandgate_device=[\w-]{22}\.[\w-]{43}; Path=\/; Max-Age=31536000; HttpOnly; SameSite=Strict$/);
    assert.match(cookie, /^sandgate_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/);
    assert.equal(answer.headers.get("cache-control"), "no-store");
    for (const url of world.stack.urls) {
      const other = visitor.at(url);
      const { body } = await until(
        "the session is known",
        async () => (await other.call("GET", "/v1/account")).status === 200 && other.call("GET", "/v1/account"),
      );
      assert.deepEqual(body, { account, csrf_token, ...rest });
    }
  });

  for (const [what, body, message] of mistakes) {
    test(`${what} is refused by name`, async () => void expectError(await world.visitor().signUp(body), "invalid_request", message));
  }

  test("without a name it is what stands before the @", async () => {
    const visitor = world.visitor();
    for (const name of [undefined, "   "]) {
      const { account } = expectOk(await world.visitor().signUp({ name, email: `${name ? "b" : "a"}${visitor.email}` }));
      assert.equal(account.name, `${name ? "b" : "a"}${visitor.email.split("@")[0]}`);
    }
  });

  test("an address is one account, in whatever case and with whatever spaces it is typed, and signing up again changes nothing", async () => {
    const member = await world.member();
    const { email, password } = member;
    for (const variant of [email, email.toUpperCase(), ` ${email} `]) {
      const again = world.visitor(1);
      assert.deepEqual(expectOk(await again.register({ email: variant })), neutral);
      expectError(await again.logIn(variant, again.password), "unauthorized", wrong);
    }
    expectOk(await world.visitor().logIn(email, password));
  });

  test("the answer does not tell who is registered", async () => {
    const { email } = await world.member();
    const [registered, unknown] = await Promise.all([world.visitor().register({ email }), world.visitor().register()]);
    assert.ok(registered && unknown);
    const shape = ({ status, headers, body }: typeof registered) => [status, body, [...headers.keys()].sort(), headers.getSetCookie()];
    assert.deepEqual(shape(registered), shape(unknown));
    assert.deepEqual(expectOk(registered), neutral);
  });

  test("of several sign-ups with one address at the same time one succeeds and nothing is left of the others", async () => {
    const { email } = world.visitor();
    const visitors = Array.from({ length: 8 }, (_, index) => world.visitor(index % 2));
    for (const answer of await Promise.all(visitors.map((visitor) => visitor.register({ email })))) assert.deepEqual(expectOk(answer), neutral);
    // Of the passwords that were chosen, the one that was taken.
    const answers = await Promise.all(visitors.map((visitor) => visitor.logIn(email)));
    const made = answers.filter(({ status }) => status === 200);
    assert.equal(made.length, 1);
    for (const answer of answers) if (answer.status !== 200) expectError(answer, "unauthorized", wrong);
    for (const url of world.stack.urls) {
      const operator = new Api({ url, apiKey: world.stack.apiKey });
      await until("the others are gone", async () => {
        const { data } = (await operator.call<{ data: { id: string }[] }>("GET", `/v1/admin/accounts?email=${email}`)).body;
        return data.length === 1 && data[0]?.id === made[0]?.body.account.id;
      });
    }
  });

  test("from one address only so many accounts are made, and mistakes do not count", async () => {
    const { address } = world.visitor();
    const from = (): ReturnType<World["visitor"]> => Object.assign(world.visitor(), { address });
    for (let made = 0; made < limits.signUps; made++) {
      expectError(await from().signUp({ password: "short" }), "invalid_request");
      expectOk(await from().signUp());
    }
    expectError(await from().signUp(), "rate_limited", /^too many new accounts from this address; try again in \d+ seconds$/);
    expectOk(await world.visitor().signUp());
  });

  test("signing up counts the same whether the e-mail is registered or not", async () => {
    const { email } = await world.member();
    const { address } = world.visitor();
    const from = (): ReturnType<World["visitor"]> => Object.assign(world.visitor(), { address });
    for (let asked = 0; asked < limits.signUps; asked++) expectOk(await from().register({ email }));
    for (const body of [{ email }, {}]) expectError(await from().register(body), "rate_limited", /^too many new accounts/);
  });

  test("where signing up is closed the page is told, operators make the accounts, and https makes cookies secure", async () => {
    const member = await world.member();
    expectOk(await member.call("GET", "/v1/auth/settings"));
    assert.deepEqual((await world.visitor().call("GET", "/v1/auth/settings")).body, { sign_up: true });
    const [, second] = world.stack.gateways;
    assert.ok(second);
    const publicUrl = "https://sandboxes.example";
    const closed = withSettings(second, { SANDGATE_SIGN_UP: "false", SANDGATE_PUBLIC_URL: publicUrl });
    await second.stop();
    await closed.start();
    try {
      const late = world.visitor(1);
      assert.deepEqual((await late.call("GET", "/v1/auth/settings")).body, { sign_up: false });
      expectError(await late.signUp(), "forbidden", "Signing up is closed on this server. Ask its operator for an account.");
      const operator = new Api({ url: late.url, apiKey: world.stack.apiKey });
      const made = expectOk(await operator.call<{ email: string; password: string }>("POST", "/v1/admin/accounts", { email: late.email }), 201);
      late.secrets.add(made.password);
      for (const { email, password } of [member, made]) {
        const answer = await world.visitor(1).call<Entered>("POST", "/v1/auth/login", { email, password }, { origin: publicUrl });
        assert.equal(expectOk(answer).account.email, email);
        assert.match(answer.headers.getSetCookie()[0] ?? "", /; HttpOnly; SameSite=Strict; Secure$/);
      }
    } finally {
      await closed.stop();
      await second.start();
      await world.stack.ready(urlOf(world, 1));
    }
  });
}
