/** Keys as operators see and change them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import { type AdminWorld, adminId, type PageOf } from "./world.ts";

interface KeyView {
  readonly id: string;
  readonly account_id: string;
  readonly tier: string;
  readonly limits: object;
  readonly custom_tier: string | null;
  readonly custom_limits: object | null;
  readonly sandboxes: number;
  readonly revoked_at: string | null;
}

export function adminKeyTests(world: AdminWorld): void {
  const list = async (query = "") => expectOk(await world.operator().call<PageOf<KeyView>>("GET", `/v1/admin/keys${query}`));
  const change = (id: string, body: object) => world.operator(1).call<KeyView>("POST", `/v1/admin/keys/${id}`, body);

  test("keys of all accounts are listed, newest first, or those of one", async () => {
    const members = [await world.member(), await world.member()];
    const made = [];
    for (const member of members) made.push(await member.makeKey("listed"));
    const { data, pagination } = await list("?page_size=2");
    assert.deepEqual(
      data.map(({ id }) => id),
      made.map(({ id }) => id).reverse(),
    );
    assert.ok(pagination.total_items > 2);
    for (const [index, member] of members.entries()) {
      assert.deepEqual(
        (await list(`?account_id=${member.id}`)).data.map(({ id, account_id }) => [id, account_id]),
        [[made[index]?.id, member.id]],
      );
    }
    assert.equal((await list(`?account_id=${adminId}`)).data.length, 1);
    assert.deepEqual((await list(`?account_id=${newId("account")}`)).data, []);
    assert.ok(!JSON.stringify(data).includes(made[0]?.key ?? ""));
  });

  test("a key can have a tier and numbers of its own, which reach it on every gateway", async () => {
    const member = await world.member();
    const { id, key } = await member.makeKey();
    const seen = async (gateway: number) =>
      (await new Api({ url: world.stack.urls[gateway] as string, apiKey: key }).call("GET", "/v1/sandboxes/list")).headers.get("ratelimit-policy");
    for (const [body, tier, requests, customTier, customLimits] of [
      [{ tier: "pro" }, "pro", 300, "pro", null],
      [{ limits: { requests_per_minute: 90, sandboxes: 3 } }, "pro", 90, "pro", { requests_per_minute: 90, sandboxes: 3 }],
      [{ tier: null }, "beta", 90, null, { requests_per_minute: 90, sandboxes: 3 }],
      [{ limits: null }, "beta", 60, null, null],
    ] as const) {
      const changed = expectOk(await change(id, body));
      assert.deepEqual([changed.tier, changed.custom_tier, changed.custom_limits], [tier, customTier, customLimits]);
      for (const gateway of [0, 1]) await until("the new limit", async () => (await seen(gateway)) === `"requests";q=${requests};w=60`);
    }
    for (const [body, message] of [
      [{}, /^Name at least one of tier and limits$/],
      [{ tier: "gold" }, /^tier must be "beta", "pro", "enterprise" or null$/],
      [{ limits: [] }, /^limits/],
    ] as const) {
      expectError(await change(id, body), "invalid_request", message);
    }
    for (const unknown of [newId("key"), "x"]) expectError(await change(unknown, { tier: "pro" }), "not_found", `API key not found: ${unknown}`);
  });

  test("operators can revoke any key, and a change of a revoked key does not bring it back", async () => {
    const member = await world.member();
    const { id, key } = await member.makeKey();
    const revoke = () => world.operator(1).call<{ revoked_at: string }>("DELETE", `/v1/admin/keys/${id}`);
    const { revoked_at, ...rest } = expectOk(await revoke());
    assert.deepEqual(rest, { id, account_id: member.id, message: "API key revoked" });
    for (const url of world.stack.urls) {
      await until("the key is refused", async () => (await new Api({ url, apiKey: key }).call("GET", "/v1/account")).status === 401, 10_000);
    }
    assert.equal(expectOk(await revoke()).revoked_at, revoked_at);
    assert.equal(expectOk(await change(id, { tier: "enterprise" })).revoked_at, revoked_at);
    expectError(await new Api({ url: world.stack.url, apiKey: key }).call("GET", "/v1/account"), "unauthorized", "This API key has been revoked.");
    expectError(await world.operator().call("DELETE", `/v1/admin/keys/${newId("key")}`), "not_found");
  });
}
