/** Who may call: keys, accounts, and the walls between accounts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "../../../gateway/api/routes.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const missing = "Missing API key. Include it in the x-api-key header.";
const invalid = "Invalid API key. Check that it is correct and active.";
const revoked = "This API key has been revoked.";

const accounts = await fixture(Accounts.open(sharedStack()));
const [alice, bob] = await Promise.all([accounts.make("alice"), accounts.make("bob")]);

const listWith = (apiKey: string, query = "") => new Api({ url: sharedStack().url, apiKey }).call("GET", `/v1/sandboxes/list${query}`);

for (const { access, method, path } of routes) {
  if (access === "open" || access === "anyone") continue;
  test(`${method} ${path} needs a key`, async () => {
    const stranger = new Api({ url: sharedStack().url, apiKey: "" });
    const real = path.replace(":id", newId("sandbox"));
    expectError(await stranger.call(method, real), "unauthorized", missing);
    expectError(await stranger.call(method, `${real}?api_key=`), "unauthorized", missing);
    expectError(await stranger.call(method, real, undefined, { "x-api-key": "sg_wrong" }), "unauthorized", invalid);
  });
}

test("the key is taken from the header or from the query, the header comes first", async () => {
  const key = alice.api.apiKey;
  expectOk(await listWith(key));
  expectOk(await listWith("", `?api_key=${encodeURIComponent(key)}`));
  expectOk(await listWith(key, "?api_key=sg_wrong"));
  expectError(await listWith("sg_wrong", `?api_key=${key}`), "unauthorized", invalid);
});

test("what only resembles a key is not recognised", async () => {
  const key = alice.api.apiKey;
  for (const wrong of [key.slice(0, -1), `${key}x`, key.toUpperCase(), `${key} ${key}`, "Bearer x", "x".repeat(2_000)]) {
    expectError(await listWith(wrong), "unauthorized", invalid);
  }
  expectError(await listWith("", "?xapi_key=sg_wrong"), "unauthorized", missing);
  expectError(await listWith("", "?api_key=%00%ff"), "unauthorized", invalid);
});

test("a revoked key is told so, the account's other key goes on", async () => {
  const second = await alice.addKey();
  await alice.revoke(second.apiKey);
  await until("the key is refused", async () => (await listWith(second.apiKey)).status === 401);
  expectError(await listWith(second.apiKey), "unauthorized", revoked);
  expectError(await listWith("", `?api_key=${second.apiKey}`), "unauthorized", revoked);
  expectOk(await listWith(alice.api.apiKey));
});

test("a suspended account is forbidden", async () => {
  const { api, suspend } = await accounts.make("suspended");
  await suspend();
  await until("the account is refused", async () => (await listWith(api.apiKey)).status !== 200);
  expectError(await listWith(api.apiKey), "forbidden", /suspended/);
});

test("all keys of an account see the same sandboxes", async () => {
  const second = await alice.addKey();
  const id = await alice.api.create();
  assert.equal((await second.execute(id, "echo shared")).stdout, "shared\n");
  expectOk(await second.call("DELETE", `/v1/sandboxes/${id}/delete`));
});

test("another account's sandbox or snapshot answers every call exactly as one that does not exist", async () => {
  const id = await alice.api.create({ name: "private" });
  await alice.api.execute(id, "echo secret > /root/secret");
  const snapshot = expectOk(await alice.api.call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`), 201).id;
  for (const { access, method, path, socket } of routes) {
    // A WebSocket is asked for in another way, which the tests of live sessions do.
    if (access !== "account" || !path.includes(":id") || socket) continue;
    const body = path.includes("/execute") ? { command: "touch /root/intruder" } : path.endsWith("/fork") ? { count: 1 } : undefined;
    const query = /upload|download|stat$/.test(path) ? "?path=/root/secret" : "";
    const ofSnapshots = path.startsWith("/v1/snapshots");
    const [real, none, kind] = ofSnapshots ? [snapshot, newId("snapshot"), "Snapshot"] : [id, newId("sandbox"), "Sandbox"];
    const [foreign, absent] = await Promise.all([real, none].map((target) => bob.api.call(method, path.replace(":id", target) + query, body)));
    assert.ok(foreign && absent);
    expectError(foreign, "not_found", `${kind} not found: ${real}`);
    expectError(absent, "not_found", `${kind} not found: ${none}`);
    const shape = ({ status, headers }: typeof foreign) => [status, [...headers.keys()].sort()];
    assert.deepEqual(shape(foreign), shape(absent));
  }
  assert.equal((await alice.api.execute(id, "ls /root; cat /root/secret")).stdout, "secret\nsecret\n");
  expectOk(await alice.api.call("GET", `/v1/snapshots/${snapshot}`));
});

test("list, logs and delete-all end at the account's border", async () => {
  const id = await alice.api.create();
  await alice.api.execute(id, "echo for alice only");
  const { body: list } = await bob.api.call<{ data: unknown[]; pagination: { total_items: number } }>("GET", "/v1/sandboxes/list");
  assert.deepEqual([list.data, list.pagination.total_items], [[], 0]);
  for (const query of ["", `?sandbox_id=${id}`]) assert.deepEqual((await bob.api.call("GET", `/v1/sandboxes/logs${query}`)).body, { logs: [], total: 0 });
  expectError(await bob.api.call("GET", `/v1/sandboxes/logs?account_id=${alice.id}`), "invalid_request", "Unknown query parameter: account_id");
  assert.deepEqual((await bob.api.call("GET", "/v1/sandboxes/find?name=sb_")).body, { data: [] });
  assert.equal(expectOk(await bob.api.call("DELETE", "/v1/sandboxes/delete-all")).deleted_count, 0);
  assert.equal((await alice.api.execute(id, "echo alive")).stdout, "alive\n");
});
