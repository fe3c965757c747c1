/** Changing the password. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import type { Visitor } from "../../helpers/visitor.ts";
import { limits, urlOf, type World } from "./world.ts";

const path = "/v1/account/password";
const wrong = "The current password is wrong.";

function change(visitor: Visitor, current_password: string, new_password: string) {
  visitor.secrets.add(new_password);
  return visitor.call<{ message: string; csrf_token: string }>("POST", path, { current_password, new_password });
}

export function passwordTests(world: World): void {
  test("a new password ends all sessions but the one that it answers with, on every gateway", async () => {
    const member = await world.member();
    const others = [world.visitor(0), world.visitor(1)];
    for (const other of others) expectOk(await other.logIn(member.email, member.password));
    const old = Object.assign(world.visitor(), { cookie: member.cookie });
    const answer = await change(member, member.password, "a new and long password");
    assert.equal(expectOk(answer).csrf_token, member.csrfToken);
    assert.match(answer.headers.getSetCookie()[0] ?? "", /^sandgate_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/);
    for (const session of [old, ...others, ...others.map((other) => other.at(urlOf(world, 1)))]) {
      await until("the session is over", async () => (await session.call("GET", "/v1/account")).status === 401);
    }
    for (const url of world.stack.urls) {
      const mine = member.at(url);
      await until("the new session is known", async () => (await mine.call("GET", "/v1/account")).status === 200);
    }
    await member.makeKey("with the new token");
    expectError(await world.visitor(1).logIn(member.email, member.password), "unauthorized");
    expectOk(await world.visitor(1).logIn(member.email, "a new and long password"));
  });

  test("the current password must be right, and guessing it is counted with the log-ins", async () => {
    const member = await world.member();
    for (let tried = 0; tried < limits.accountFailures; tried++) {
      expectError(await change(member, "not the current one", "a new and long password"), "forbidden", wrong);
    }
    expectError(await change(member, member.password, "a new and long password"), "rate_limited", /^too many wrong passwords/);
    expectError(await member.at(urlOf(world, 1)).logIn(member.email, member.password), "rate_limited");
    expectOk(await member.call("GET", "/v1/account"));
  });

  test("bad new passwords are refused by name and change nothing", async () => {
    const member = await world.member();
    for (const [next, message] of [
      ["short", /^new_password must be a string of 10 to 200 characters$/],
      ["x".repeat(201), /^new_password must be/],
      [member.email.toUpperCase(), /^new_password must not be the e-mail address$/],
    ] as const) {
      expectError(await change(member, member.password, next), "invalid_request", message);
    }
    expectError(await member.call("POST", path, { new_password: "a new and long password" }), "invalid_request", "Missing required field: current_password");
    expectOk(await world.visitor().logIn(member.email, member.password));
  });

  test("of two changes at the same time one counts", async () => {
    const member = await world.member();
    const other = world.visitor(1);
    expectOk(await other.logIn(member.email, member.password));
    await until("the session is known", async () => (await other.call("GET", "/v1/account")).status === 200);
    const answers = await Promise.all([change(member, member.password, "the first new password"), change(other, member.password, "the other new password")]);
    assert.equal(answers.filter(({ status }) => status === 200).length, 1, JSON.stringify(answers));
    const [winner, loser] =
      answers[0].status === 200 ? ["the first new password", "the other new password"] : ["the other new password", "the first new password"];
    expectOk(await world.visitor().logIn(member.email, winner));
    expectError(await world.visitor().logIn(member.email, loser), "unauthorized");
  });
}
