/** Logging in and out, and what guessing costs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { until } from "../../helpers/until.ts";
import { limits, urlOf, type World } from "./world.ts";

const wrong = "Wrong e-mail or password.";
const tooMany = /^too many wrong passwords for this account; try again in \d+ seconds$/;

export function logInTests(world: World): void {
  test("the right password logs in, the e-mail in whatever case", async () => {
    const { email, password } = await world.member();
    for (const variant of [email, ` ${email.toUpperCase()} `]) {
      const browser = world.visitor(1);
      const answer = await browser.logIn(variant, password);
      assert.equal(expectOk(answer).account.email, email);
      assert.match(answer.headers.getSetCookie()[0] ?? "", /^sandgate_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/);
      await until("the session is known", async () => (await browser.call("GET", "/v1/account")).status === 200);
    }
  });

  test("a wrong password and an unknown e-mail are the same answer", async () => {
    const { email } = await world.member();
    const [password, address] = await Promise.all([
      world.visitor().logIn(email, "not the password"),
      world.visitor().logIn("nobody@example.com", "some password"),
    ]);
    assert.ok(password && address);
    expectError(password, "unauthorized", wrong);
    expectError(address, "unauthorized", wrong);
    const shape = ({ status, headers }: typeof password) => [status, [...headers.keys()].sort()];
    assert.deepEqual(shape(password), shape(address));
  });

  test("bodies that are none are refused by name", async () => {
    for (const [body, message] of [
      [{}, /^Missing required field: email$/],
      [{ email: "a@example.com" }, /^Missing required field: password$/],
      [{ email: 1, password: "x" }, /^email must be/],
      [{ email: "a@example.com", password: null }, /^password must be/],
      [{ email: "a@example.com", password: "x".repeat(1_001) }, /^password must be/],
    ] as const) {
      expectError(await world.visitor().call("POST", "/v1/auth/login", body), "invalid_request", message);
    }
  });

  test("from one address an account takes only so many wrong passwords, over all gateways; then not the right one either", async () => {
    const { email, password } = await world.member();
    const { address } = world.visitor();
    const from = (gateway: number) => Object.assign(world.visitor(gateway), { address });
    for (let tried = 0; tried < limits.accountFailures; tried++) expectError(await from(tried % 2).logIn(email, "wrong password"), "unauthorized", wrong);
    for (const gateway of [0, 1]) {
      expectError(await from(gateway).logIn(email, "wrong password"), "rate_limited", tooMany);
      expectError(await from(gateway).logIn(email.toUpperCase(), password), "rate_limited", tooMany);
    }
    const other = await world.member();
    expectOk(await from(0).logIn(other.email, other.password));
    expectOk(await world.visitor().logIn(email, password));
  });

  /** Uses up what all strangers together may try. */
  const flood = async (email: string): Promise<void> => {
    for (let tried = 0; tried < 10 * limits.accountFailures; tried++) {
      expectError(await world.visitor(tried % 2).logIn(email, "wrong password"), "unauthorized", wrong);
    }
  };

  test("strangers from many addresses are stopped, and do not lock out a browser that has logged in before", async () => {
    const { email, password, device } = await world.member();
    await flood(email);
    for (const gateway of [0, 1]) expectError(await world.visitor(gateway).logIn(email, password), "rate_limited", tooMany);
    for (const gateway of [0, 1]) expectOk(await Object.assign(world.visitor(gateway), { device }).logIn(email, password));
    // What shows the browser is good for this account, this password and a bounded number of tries.
    const other = await world.member();
    for (const forged of [other.device, `${device.slice(0, -1)}${device.endsWith("A") ? "B" : "A"}`, device.split(".")[0] ?? "", "sandgate_device=."]) {
      expectError(await Object.assign(world.visitor(), { device: forged }).logIn(email, password), "rate_limited", tooMany);
    }
    const owner = () => Object.assign(world.visitor(), { device });
    for (let tried = 0; tried < limits.accountFailures; tried++) expectError(await owner().logIn(email, "wrong password"), "unauthorized", wrong);
    expectError(await owner().logIn(email, password), "rate_limited", tooMany);
  });

  test("for an e-mail that nobody has it is the same", async () => {
    const { email } = world.visitor();
    const { address } = world.visitor();
    const from = (gateway: number) => Object.assign(world.visitor(gateway), { address });
    for (let tried = 0; tried < limits.accountFailures; tried++) expectError(await from(tried % 2).logIn(email, "some password"), "unauthorized", wrong);
    for (const gateway of [0, 1]) expectError(await from(gateway).logIn(email, "some password"), "rate_limited", tooMany);
    const unknown = world.visitor();
    await flood(unknown.email);
    expectError(await world.visitor().logIn(unknown.email, "some password"), "rate_limited", tooMany);
  });

  test("the right password costs no tries", async () => {
    const { email, password } = await world.member();
    for (let tried = 0; tried < limits.accountFailures + 2; tried++) expectOk(await world.visitor(tried % 2).logIn(email, password));
    expectError(await world.visitor().logIn(email, "wrong password"), "unauthorized", wrong);
    expectOk(await world.visitor().logIn(email, password));
  });

  test("an address takes only so many failures, whatever the accounts; keys count too", async () => {
    const { address } = world.visitor();
    const from = () => Object.assign(world.visitor(), { address });
    for (let tried = 0; tried < limits.addressFailures - 1; tried++) {
      const guesser = from();
      expectError(await guesser.logIn(guesser.email, "some password"), "unauthorized", wrong);
    }
    const key = new Api({ url: world.stack.url, apiKey: "sg_wrong" });
    expectError(await key.call("GET", "/v1/account", undefined, { "x-forwarded-for": address }), "unauthorized");
    const exhausted = /^too many failed authentications from this address; try again in \d+ seconds?$/;
    expectError(await key.call("GET", "/v1/account", undefined, { "x-forwarded-for": address }), "rate_limited", exhausted);
    const member = await world.member();
    expectError(await from().logIn(member.email, member.password), "rate_limited", exhausted);
    expectOk(await world.visitor().logIn(member.email, member.password));
  });

  test("who writes an X-Forwarded-For of their own is still counted by what the proxy adds in another one", async () => {
    const { address } = world.visitor();
    const guess = async (): Promise<number> => {
      const wire = await Connection.open(world.stack.url);
      const own = world.visitor();
      const body = JSON.stringify({ email: own.email, password: "some password" });
      const lines = [
        `host: ${new URL(world.stack.url).host}`,
        "content-type: application/json",
        `content-length: ${body.length}`,
        `x-forwarded-for: ${own.address}`,
        `x-forwarded-for: ${address}`,
      ];
      const { status } = await wire.send(`POST /v1/auth/login HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`).answer();
      wire.cut();
      return status;
    };
    for (let tried = 0; tried < limits.addressFailures; tried++) assert.equal(await guess(), 401);
    assert.equal(await guess(), 429);
  });

  test("logging out ends the session on every gateway and clears the cookie, other sessions go on", async () => {
    const member = await world.member();
    const other = world.visitor();
    expectOk(await other.logIn(member.email, member.password));
    const before = member.cookie;
    const answer = await member.call("POST", "/v1/auth/logout");
    assert.deepEqual(expectOk(answer), { message: "Logged out" });
    assert.equal(answer.headers.getSetCookie()[0], "sandgate_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    for (const gateway of [0, 1]) {
      const again = Object.assign(world.visitor(gateway), { cookie: before });
      await until("the session is over", async () => (await again.call("GET", "/v1/account")).status === 401);
    }
    expectOk(await other.call("GET", "/v1/account"));
    expectError(await world.visitor().call("POST", "/v1/auth/logout"), "unauthorized");
    assert.ok(urlOf(world, 1));
  });
}
