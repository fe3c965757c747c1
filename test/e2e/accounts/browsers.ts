/** What keeps other sites, and people with only a key, from doing what a logged-in person may. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import type { World } from "./world.ts";

const foreign = "This call must come from Sandgate's own pages.";
const noToken = "The x-csrf-token header is missing or wrong.";

/** Everything that only a logged-in person may do. */
const personal: readonly [method: string, path: string, body?: object][] = [
  ["POST", "/v1/account/keys", {}],
  ["DELETE", `/v1/account/keys/${newId("key")}`],
  ["POST", "/v1/account/password", { current_password: "x", new_password: "a new and long password" }],
  ["POST", "/v1/auth/logout"],
];

export function browserTests(world: World): void {
  test("pages of other sites cannot sign up or log in", async () => {
    const member = await world.member();
    const login = { email: member.email, password: member.password };
    for (const headers of [{ origin: "https://evil.example" }, { origin: "null" }, { origin: `${world.stack.url}0` }, { "sec-fetch-site": "cross-site" }]) {
      const stranger = world.visitor();
      expectError(await stranger.call("POST", "/v1/auth/signup", { email: stranger.email, password: stranger.password }, headers), "forbidden", foreign);
      expectError(await stranger.call("POST", "/v1/auth/login", login, headers), "forbidden", foreign);
    }
    for (const headers of [{ origin: world.stack.url }, { "sec-fetch-site": "same-origin" }, {}]) {
      expectOk(await world.visitor().call("POST", "/v1/auth/login", login, headers));
    }
  });

  test("a change needs the session's own token and no foreign origin", async () => {
    const member = await world.member();
    const other = await world.member();
    for (const [method, path, body] of [...personal, ["DELETE", "/v1/sandboxes/delete-all"] as const]) {
      for (const token of ["", "wrong", member.csrfToken.slice(1), other.csrfToken]) {
        expectError(await member.call(method, path, body, { "x-csrf-token": token }), "forbidden", noToken);
      }
      expectError(await member.call(method, path, body, { origin: "https://evil.example" }), "forbidden", foreign);
    }
    expectOk(await member.call("GET", "/v1/account"));
    await member.makeKey("with the right token");
  });

  test("an API key is not enough for what only a person may do", async () => {
    const member = await world.member();
    const { key } = await member.makeKey();
    const api = new Api({ url: world.stack.url, apiKey: key });
    for (const [method, path, body] of personal) {
      expectError(await api.call(method, path, body), "forbidden", "Log in on the web page for this; an API key is not enough.");
    }
    const { csrf_token, ...seen } = expectOk(await member.call("GET", "/v1/account"));
    assert.equal(csrf_token, member.csrfToken);
    assert.deepEqual(expectOk(await api.call("GET", "/v1/account")), seen);
  });

  test("a cookie that is none, or somebody else's guess, is no session", async () => {
    for (const cookie of ["sandgate_session=", "sandgate_session=guess", "other=1", `sandgate_session=${"x".repeat(3_000)}`]) {
      expectError(
        await Object.assign(world.visitor(), { cookie }).call("GET", "/v1/account"),
        "unauthorized",
        "Missing API key. Include it in the x-api-key header.",
      );
    }
  });

  test("a logged-in browser may use the API, and its pages cost none of its requests", async () => {
    const member = await world.member();
    const left = async (path: string) => Number(/r=(\d+)/.exec((await member.call("GET", path)).headers.get("ratelimit") ?? "")?.[1]);
    const spent = async () => {
      const { body } = await member.call<{ keys: { requests: { limit: number; remaining: number } }[] }>("GET", "/v1/account/usage");
      return body.keys.map(({ requests: { limit, remaining } }) => limit - remaining);
    };
    for (let calls = 1; calls <= 3; calls++) {
      assert.ok((await left("/v1/sandboxes/list")) < 60);
      assert.ok((await left("/v1/account")) > 500);
    }
    // Tokens that a gateway holds for the next calls are counted as spent until it gives them back.
    await until("the three calls, and no others, are counted", async () => (await spent()).join() === "3");
  });
}
