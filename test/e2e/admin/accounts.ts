/** Accounts as operators see and change them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "../../../gateway/api/routes.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Api, chunksOf } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { until } from "../../helpers/until.ts";
import { Visitor } from "../../helpers/visitor.ts";
import { type AccountView, type AdminWorld, adminId, type PageOf } from "./world.ts";

/** With the password that is shown once. */
interface NewAccountView extends AccountView {
  readonly name: string;
  readonly password: string;
}

const beta = { requests_per_minute: 60, burst: 60, sandboxes: 10 };
const pathOf = (id: string): string => `/v1/admin/accounts/${id}`;

export function adminAccountTests(world: AdminWorld): void {
  const change = (id: string, body: object, gateway = 0) => world.operator(gateway).call<AccountView>("POST", pathOf(id), body);

  test("nobody but operators may use any of the operator's calls", async () => {
    const member = await world.member();
    const { key } = await member.makeKey();
    const api = new Api({ url: world.stack.url, apiKey: key });
    const calls = routes.filter(({ path }) => path.startsWith("/v1/admin/"));
    assert.ok(calls.length >= 11);
    for (const { method, path } of calls) {
      for (const caller of [api, member]) {
        expectError(
          await caller.call(method, path.replace(":id", member.id), method === "POST" ? { operator: true } : undefined),
          "forbidden",
          "Only an operator may do this.",
        );
      }
    }
  });

  const create = (body: object, gateway = 0) => world.operator(gateway).call<NewAccountView>("POST", "/v1/admin/accounts", body);

  test("an operator creates an account, and its owner logs in with the password that is shown once", async () => {
    const visitor = new Visitor(world.stack.url);
    const { id, password, ...shown } = expectOk(await create({ email: ` ${visitor.email} ` }, 1), 201);
    const { name, email, tier, operator, suspended, limits, custom_limits, keys } = shown;
    assert.deepEqual(
      { name, email, tier, operator, suspended, limits, custom_limits, keys },
      {
        ...{ name: visitor.email.split("@")[0], email: visitor.email, tier: "beta", operator: false, suspended: false },
        ...{ limits: beta, custom_limits: null, keys: 0 },
      },
    );
    assert.match(password, /^[\w-]{20}$/);
    const { account } = expectOk(await visitor.logIn(visitor.email.toUpperCase(), password));
    assert.deepEqual([account.id, account.limits], [id, beta]);
    const { key } = await visitor.makeKey();
    for (const url of world.stack.urls) {
      const limited = await until("the key is known", async () => {
        const { status, headers } = await new Api({ url, apiKey: key }).call("GET", "/v1/sandboxes/list");
        return status === 200 && headers.get("ratelimit-policy");
      });
      assert.equal(limited, '"requests";q=60;w=60');
    }
    const view = expectOk(await world.operator().call<AccountView>("GET", pathOf(id)));
    assert.ok(!JSON.stringify(view).includes(password));
    const next = "chosen at the first visit 1";
    expectOk(await visitor.call("POST", "/v1/account/password", { current_password: password, new_password: next }));
    await until("the password is the owner's", async () => (await visitor.logIn(visitor.email, next)).status === 200);
  });

  test("an account is created with the name, tier, limits and rights that are given", async () => {
    const visitor = new Visitor(world.stack.url);
    const given = { name: " Ada Lovelace ", tier: "pro", limits: { sandboxes: 3 }, isolation: "strong", operator: true };
    const { id, ...made } = expectOk(await create({ email: visitor.email, ...given }), 201);
    const limits = { requests_per_minute: 300, burst: 300, sandboxes: 3 };
    const expected = { name: "Ada Lovelace", tier: "pro", limits, custom_limits: { sandboxes: 3 }, isolation: "strong", operator: true };
    for (const view of [made, expectOk(await world.operator(1).call<AccountView>("GET", pathOf(id)))]) assert.partialDeepStrictEqual(view, expected);
    expectOk(await visitor.logIn(visitor.email, made.password));
    assert.equal((await visitor.call("GET", "/v1/admin/workers")).status, 200);
  });

  test("an account with a taken or bad address, or with what no account has, is not created", async () => {
    const member = await world.member();
    for (const email of [member.email, ` ${member.email.toUpperCase()}`])
      expectError(await create({ email, tier: "pro" }, 1), "conflict", "This e-mail address already has an account.");
    expectOk(await member.logIn());
    const { email } = new Visitor(world.stack.url);
    for (const [body, message] of [
      [{}, /^Missing required field: email$/],
      [{ email: "ada.example.com" }, /^email must be an e-mail address/],
      [{ email: `${"a".repeat(250)}@x.io` }, /^email must be .* 254/],
      [{ email, name: "\u001b[31mred" }, /^name must be .* without control characters/],
      [{ email, tier: "gold" }, /^tier must be "beta", "pro" or "enterprise"$/],
      [{ email, limits: { burst: 0 } }, /^limits\.burst must be an integer between/],
      [{ email, limits: null }, /^limits must be/],
      [{ email, suspended: true }, /^Unknown field: suspended$/],
      [{ email, password: "chosen by hand 1" }, /^Unknown field: password$/],
    ] as const) {
      expectError(await create(body), "invalid_request", message);
    }
    const found = async (part: string) =>
      expectOk(await world.operator().call<PageOf<AccountView>>("GET", `/v1/admin/accounts?email=${part}`)).data.map(({ id }) => id);
    assert.deepEqual(await found(email), []);
    await until("nothing is left of the second one", async () => (await found(member.email)).join() === member.id);
  });

  test("accounts are listed newest first, by pages, and found by a part of the e-mail", async () => {
    const members = [await world.member(), await world.member(1), await world.member()];
    const operator = world.operator();
    const ids = async (query: string) => expectOk(await operator.call<PageOf<AccountView>>("GET", `/v1/admin/accounts${query}`));
    const [first, second] = [await ids("?page_size=2"), await ids("?page_size=2&page=2")];
    assert.deepEqual(
      [...first.data, ...second.data].slice(0, 3).map(({ id }) => id),
      members.map(({ id }) => id).reverse(),
    );
    assert.deepEqual(first.pagination.total_pages, Math.ceil(first.pagination.total_items / 2));
    for (const member of members) {
      assert.deepEqual(
        (await ids(`?email=${member.email.slice(1, -4).toUpperCase()}`)).data.map(({ id }) => id),
        [member.id],
      );
    }
    assert.deepEqual((await ids("?email=nobody-at-all")).data, []);
    expectError(await operator.call("GET", "/v1/admin/accounts?page_size=101"), "invalid_request", /^page_size must be/);
  });

  test("one account is shown with its keys", async () => {
    const member = await world.member();
    const key = await member.makeKey();
    const account = expectOk(await world.operator(1).call<AccountView>("GET", pathOf(member.id)));
    const { api_keys, ...shown } = account;
    assert.deepEqual(
      api_keys?.map(({ id }) => id),
      [key.id],
    );
    const { limits, custom_limits, keys, sandboxes, tier, suspended, operator, email } = shown;
    assert.deepEqual(
      { limits, custom_limits, keys, sandboxes, tier, suspended, operator, email },
      {
        limits: beta,
        custom_limits: null,
        keys: 1,
        sandboxes: 0,
        tier: "beta",
        suspended: false,
        operator: false,
        email: member.email,
      },
    );
    assert.equal(JSON.stringify(account).includes("scrypt"), false);
    for (const id of [newId("account"), "acct_", "nobody", "first-operator", "acct_%2e%2e", `acct_${"x".repeat(80)}`]) {
      expectError(await world.operator().call("GET", pathOf(id)), "not_found", /^Account not found: /);
      expectError(await change(id, { tier: "pro" }), "not_found");
    }
  });

  test("tier and numbers are changed one by one, and reach keys on every gateway", async () => {
    const member = await world.member();
    const { key } = await member.makeKey();
    const limitsSeen = async (gateway: number): Promise<string> =>
      (await new Api({ url: world.stack.urls[gateway] as string, apiKey: key }).call("GET", "/v1/sandboxes/list")).headers.get("ratelimit-policy") ?? "";
    const changes: readonly [body: object, requests: number, burst: number, sandboxes: number, custom: object | null][] = [
      [{ tier: "pro" }, 300, 300, 50, null],
      [{ limits: { requests_per_minute: 500 } }, 500, 500, 50, { requests_per_minute: 500 }],
      [{ limits: { burst: 20, sandboxes: 0 } }, 500, 20, 0, { requests_per_minute: 500, burst: 20, sandboxes: 0 }],
      [{ tier: "enterprise", limits: { sandboxes: 7 } }, 500, 20, 7, { requests_per_minute: 500, burst: 20, sandboxes: 7 }],
      [{ limits: null, tier: "beta" }, 60, 60, 10, null],
    ];
    for (const [body, requests_per_minute, burst, sandboxes, custom] of changes) {
      const changed = expectOk(await change(member.id, body));
      assert.deepEqual([changed.limits, changed.custom_limits], [{ requests_per_minute, burst, sandboxes }, custom]);
      for (const gateway of [0, 1]) await until("the new limit", async () => (await limitsSeen(gateway)) === `"requests";q=${requests_per_minute};w=60`);
    }
  });

  test("bad changes are refused by name and change nothing", async () => {
    const member = await world.member();
    for (const [body, message] of [
      [{}, /^Name at least one of/],
      [{ teir: "pro" }, /^Unknown field: teir$/],
      [{ tier: "gold" }, /^tier must be "beta", "pro" or "enterprise"$/],
      [{ suspended: "yes" }, /^suspended must be true or false$/],
      [{ operator: null }, /^operator must be true or false$/],
      [{ limits: 5 }, /^limits must be/],
      [{ limits: { burst: 0 } }, /^limits\.burst must be an integer between 1 and 1000000000$/],
      [{ limits: { sandboxes: 1.5 } }, /^limits\.sandboxes must be an integer between 0 and 1000000$/],
      [{ limits: { requests_per_minute: 1e12 } }, /^limits\.requests_per_minute must be an integer between/],
    ] as const) {
      expectError(await change(member.id, body), "invalid_request", message);
    }
    const { tier, custom_limits } = expectOk(await world.operator().call<AccountView>("GET", pathOf(member.id)));
    assert.deepEqual([tier, custom_limits], ["beta", null]);
  });

  test("of changes made at the same time through two gateways none is lost", async () => {
    const member = await world.member();
    const answers = await Promise.all([
      change(member.id, { tier: "pro" }),
      change(member.id, { limits: { burst: 9 } }, 1),
      change(member.id, { suspended: true }, 1),
    ]);
    for (const answer of answers) expectOk(answer);
    for (const gateway of [0, 1]) {
      await until("all three are seen", async () => {
        const { body } = await world.operator(gateway).call<AccountView>("GET", pathOf(member.id));
        return body.tier === "pro" && body.limits.burst === 9 && body.suspended;
      });
    }
  });

  test("a suspended account is refused everywhere at once, its streams end, and it can be taken back", async () => {
    const member = await world.member();
    const { key } = await member.makeKey();
    const apis = world.stack.urls.map((url) => new Api({ url, apiKey: key }));
    const [first] = apis;
    assert.ok(first);
    const sandbox = await first.create();
    const streams = await Promise.all(apis.map(async (api) => chunksOf(await api.stream(sandbox, "echo begun; sleep 600"))));
    for (const chunks of streams) assert.deepEqual((await chunks.next()).value, { stdout: "begun\n" });
    assert.equal(expectOk(await change(member.id, { suspended: true })).suspended, true);
    const message = "This account is suspended.";
    for (const chunks of streams) assert.deepEqual((await chunks.next()).value, { error: message, code: "forbidden", reason: "suspended" });
    for (const caller of [...apis, ...world.stack.urls.map((url) => member.at(url))]) {
      await until("the account is refused", async () => (await caller.call("GET", "/v1/sandboxes/list")).status === 403, 10_000);
      expectError(await caller.call("GET", "/v1/account"), "forbidden", message);
    }
    expectError(await member.logIn(), "forbidden", message);
    expectError(await member.logIn(member.email, "not the password"), "unauthorized", "Wrong e-mail or password.");
    expectOk(await change(member.id, { suspended: false }, 1));
    for (const api of apis) await until("the account may call again", async () => (await api.call("GET", "/v1/sandboxes/list")).status === 200);
    expectOk(await member.logIn());
    await first.delete(sandbox);
  });

  test("operators can make operators, but not shut themselves out", async () => {
    const member = await world.member();
    for (const body of [{ suspended: true }, { operator: false }, { operator: false, tier: "pro" }]) {
      expectError(await change(adminId, body), "conflict", /^You cannot suspend your own account/);
    }
    expectOk(await change(adminId, { suspended: false, operator: true }));
    expectOk(await change(member.id, { operator: true }));
    const view = await until("the member is an operator", async () => {
      const answer = await member.call<AccountView>("GET", pathOf(member.id));
      return answer.status === 200 && answer.body;
    });
    assert.equal(view.operator, true);
    expectError(await member.call("POST", pathOf(member.id), { operator: false }), "conflict");
    expectError(await member.call("POST", pathOf(member.id), { tier: "pro" }, { "x-csrf-token": "" }), "forbidden", /^The x-csrf-token header/);
    expectOk(await change(member.id, { operator: false }));
    await until("it is none any more", async () => (await member.call("GET", pathOf(member.id))).status === 403);
  });

  test("a new password ends the old one and all logins", async () => {
    const member = await world.member();
    const made = expectOk(await world.operator(1).call<{ email: string; password: string }>("POST", `${pathOf(member.id)}/password`, {}));
    assert.equal(made.email, member.email);
    assert.match(made.password, /^[\w-]{20}$/);
    await until("the browser is logged out", async () => (await member.call("GET", "/v1/account")).status === 401);
    expectError(await member.logIn(), "unauthorized");
    member.password = made.password;
    assert.equal((await member.logIn()).status, 200);
    const chosen = expectOk(await world.operator().call<{ password?: string }>("POST", `${pathOf(member.id)}/password`, { password: "chosen by hand 1" }));
    assert.equal(chosen.password, undefined);
    member.password = "chosen by hand 1";
    await until("it is known everywhere", async () => (await member.logIn()).status === 200);
    expectError(await world.operator().call("POST", `${pathOf(member.id)}/password`, { password: "short" }), "invalid_request", /10 to 200/);
    expectError(await world.operator().call("POST", `${pathOf(adminId)}/password`, {}), "conflict", /no e-mail/);
    expectError(await world.operator().call("POST", `${pathOf(newId("account"))}/password`, {}), "not_found");
  });

  test("an account is deleted with all that is its own, and its address is free again", async () => {
    const [member, other] = [await world.member(), await world.member()];
    const api = new Api({ url: world.stack.url, apiKey: (await member.makeKey()).key });
    const theirs = new Api({ url: world.stack.url, apiKey: (await other.makeKey()).key });
    const [gone, kept] = [await api.create(), await theirs.create()];
    for (const [caller, id] of [
      [api, gone],
      [theirs, kept],
    ] as const)
      await caller.execute(id, "echo said");
    assert.equal((await api.call("POST", `/v1/sandboxes/${gone}/snapshot`, { name: "last" })).status, 201);
    const deleted = expectOk(await world.operator(1).call<{ deleted_sandboxes: number; deleted_snapshots: number }>("DELETE", pathOf(member.id)));
    assert.deepEqual([deleted.deleted_sandboxes, deleted.deleted_snapshots], [1, 1]);
    await until("its key is refused", async () => (await api.call("GET", "/v1/sandboxes/list")).status === 401);
    expectError(await world.operator().call("GET", pathOf(member.id)), "not_found");
    expectError(await world.operator().call("DELETE", pathOf(member.id)), "not_found");
    assert.ok(!(await world.stack.containers()).some(({ sandboxId }) => sandboxId === gone));
    assert.equal((await theirs.execute(kept, "echo still")).stdout, "still\n");
    const logs = expectOk(await theirs.call<{ total: number }>("GET", "/v1/sandboxes/logs"));
    assert.equal(logs.total, 2);
    const again = await until("the address is free", async () => {
      const signed = await member.signUp();
      return signed.status === 200 && signed.body.account;
    });
    assert.notEqual(again.id, member.id);
    await theirs.delete(kept);
  });

  test("operators cannot delete themselves or the first account", async () => {
    expectError(await world.operator().call("DELETE", pathOf(adminId)), "conflict", /your own account/);
    const member = await world.member();
    const { key } = await member.makeKey();
    expectOk(await change(member.id, { operator: true }));
    const operator = new Api({ url: world.stack.url, apiKey: key });
    await until("it is an operator", async () => (await operator.call("GET", "/v1/admin/workers")).status === 200);
    expectError(await operator.call("DELETE", pathOf(adminId)), "conflict", /The first account/);
    expectOk(await world.operator().call("DELETE", pathOf(member.id)));
  });
}
