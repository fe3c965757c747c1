/** Making, seeing and revoking keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../../shared/util/ids.ts";
import { Api, chunksOf } from "../../helpers/api.ts";
import { expectError, expectOk, isoTime } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import type { MadeKey, Visitor } from "../../helpers/visitor.ts";
import { urlOf, type World } from "./world.ts";

const keysMax = 5;
const tooMany = "An account can have at most 5 active keys; revoke one first.";

interface ListedKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
}

const list = async (visitor: Visitor): Promise<ListedKey[]> => expectOk(await visitor.call<{ data: ListedKey[] }>("GET", "/v1/account/keys")).data;
const revoke = (visitor: Visitor, id: string) => visitor.call<{ id: string; revoked_at: string }>("DELETE", `/v1/account/keys/${id}`);

export function keyTests(world: World): void {
  test("a key is shown once, works on every gateway, and is listed without itself", async () => {
    const member = await world.member();
    const made = await member.makeKey("  laptop ");
    assert.deepEqual(Object.keys(made), ["id", "name", "prefix", "created_at", "key"]);
    assert.match(made.id, /^key_[0-9a-z]{26}$/);
    assert.match(made.key, /^sg_[\w-]{48}$/);
    assert.match(made.created_at, isoTime);
    assert.deepEqual([made.name, made.prefix], ["laptop", made.key.slice(0, 10)]);
    const unnamed = await member.makeKey();
    assert.equal(unnamed.name, "API key");
    const limits = { requests_per_minute: 60, burst: 60, sandboxes: 10 };
    const { key: _, ...shown } = made;
    const fresh = { last_used_at: null, revoked_at: null, tier: "beta", limits };
    assert.deepEqual((await list(member))[1], { ...shown, ...fresh });
    for (const url of world.stack.urls) {
      const api = new Api({ url, apiKey: made.key });
      await until("the key is known", async () => (await api.call("GET", "/v1/account", undefined, { "x-forwarded-for": member.address })).status === 200);
    }
    await until("its use is seen", async () => isoTime.test((await list(member))[1]?.last_used_at ?? ""));
    assert.equal((await list(member))[0]?.last_used_at, null, "the other key was not used");
    const byKey = await new Api({ url: world.stack.url, apiKey: made.key }).call<{ data: ListedKey[] }>("GET", `/v1/account/keys?api_key=${made.key}`);
    assert.deepEqual(
      expectOk(byKey).data.map(({ id }) => id),
      [unnamed.id, made.id],
    );
  });

  test("bad names are refused", async () => {
    const member = await world.member();
    for (const name of ["x".repeat(101), "line\nbreak", "\u0000", 7, null]) {
      expectError(await member.call("POST", "/v1/account/keys", { name }), "invalid_request", /^name must be/);
    }
    assert.deepEqual(await list(member), []);
  });

  test("of many keys made at the same time over all gateways exactly as many as allowed are made", async () => {
    const member = await world.member();
    const other = member.at(urlOf(world, 1));
    await until("the session is known", async () => (await other.call("GET", "/v1/account")).status === 200);
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, at) => [member, other][at % 2]?.call<MadeKey>("POST", "/v1/account/keys", { name: `key ${at}` })),
      );
      const made = answers.flatMap((answer) => (answer?.status === 201 ? [answer.body] : []));
      for (const answer of answers) if (answer && answer.status !== 201) expectError(answer, "conflict", tooMany);
      for (const { key } of made) member.secrets.add(key);
      assert.equal(made.length, keysMax);
      for (const visitor of [member, other]) {
        const active = await until("nothing is left of the others", async () => {
          const ids = (await list(visitor)).filter(({ revoked_at }) => revoked_at === null).map(({ id }) => id);
          return ids.length === keysMax && ids;
        });
        assert.deepEqual(active.sort(), made.map(({ id }) => id).sort());
      }
      for (const { id, key } of made) {
        expectOk(await new Api({ url: world.stack.url, apiKey: key }).call("GET", "/v1/account"));
        expectOk(await revoke(member, id));
      }
    }
  });

  test("a revoked key makes room for another", async () => {
    const member = await world.member();
    const made = [];
    for (let count = 0; count < keysMax; count++) made.push(await member.makeKey());
    expectError(await member.call("POST", "/v1/account/keys", {}), "conflict", tooMany);
    expectOk(await revoke(member, made[0]?.id ?? ""));
    await member.makeKey();
    assert.equal((await list(member)).length, keysMax + 1);
  });

  test("revoking ends a key and its open streams on every gateway, once and for all", async () => {
    const member = await world.member();
    const { id, key } = await member.makeKey();
    const apis = world.stack.urls.map((url) => new Api({ url, apiKey: key }));
    const [first, second] = apis;
    assert.ok(first && second);
    const sandbox = await first.create();
    const streams = await Promise.all(apis.map(async (api) => chunksOf(await api.stream(sandbox, "echo begun; sleep 600"))));
    for (const chunks of streams) assert.deepEqual((await chunks.next()).value, { stdout: "begun\n" });
    const { revoked_at, ...answer } = expectOk(await revoke(member, id));
    assert.deepEqual(answer, { id, message: "API key revoked" });
    assert.match(revoked_at, isoTime);
    for (const chunks of streams) {
      assert.deepEqual((await chunks.next()).value, { error: "This API key has been revoked.", code: "unauthorized" });
      assert.equal((await chunks.next()).done, true);
    }
    for (const api of apis) {
      await until(
        "the key is refused",
        async () => (await api.call("GET", "/v1/account", undefined, { "x-forwarded-for": member.address })).status === 401,
        2_000,
      );
      const refused = await api.call("GET", "/v1/account", undefined, { "x-forwarded-for": member.address });
      expectError(refused, "unauthorized", "This API key has been revoked.");
    }
    assert.equal(expectOk(await revoke(member, id)).revoked_at, revoked_at, "the second time changes nothing");
    assert.equal((await list(member))[0]?.revoked_at, revoked_at);
    expectOk(await member.call("DELETE", `/v1/sandboxes/${sandbox}/delete`));
  });

  test("another account's key is as one that does not exist", async () => {
    const [member, other] = [await world.member(), await world.member()];
    const { id, key } = await member.makeKey();
    for (const unknown of [id, newId("key"), "key_x"]) expectError(await revoke(other, unknown), "not_found", `API key not found: ${unknown}`);
    assert.deepEqual(await list(other), []);
    expectOk(await new Api({ url: world.stack.url, apiKey: key }).call("GET", "/v1/account"));
  });
}
