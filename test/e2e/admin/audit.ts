/** The audit record: who did what to accounts and keys, as operators read it. */
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type { AuditEntry } from "../../../shared/schemas/admin/audit.ts";
import { AdminCommand } from "../../helpers/admin-command.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { newcomer } from "../../helpers/members.ts";
import { until } from "../../helpers/until.ts";
import { type AdminWorld, adminId } from "./world.ts";

interface Page {
  readonly data: AuditEntry[];
  readonly next_cursor?: string;
}

export function auditTests(world: AdminWorld): void {
  const admin = fixture(new AdminCommand(world.stack));
  const read = async (query: string, gateway = 0): Promise<Page> =>
    expectOk(await world.operator(gateway).call<Page>("GET", `/v1/admin/audit${query}`)) as unknown as Page;
  const has = (id: string, action: string) => async (): Promise<boolean> => (await read(`?account_id=${id}`)).data.some((entry) => entry.action === action);

  test("what is done by and to an account is shown in order, with who did it from where, and with no secret", async () => {
    const member = await world.member();
    const password = "no such password 1";
    expectError(await member.logIn(member.email, password), "unauthorized");
    const made = await member.makeKey();
    // Each gateway stores what was done there, in its order, and perhaps later than another one.
    await until("the key is recorded", has(member.id, "createApiKey"));
    expectOk(await world.operator(1).call("POST", `/v1/admin/accounts/${member.id}`, { tier: "pro", limits: { sandboxes: 3 } }));
    expectOk(await world.operator().call("POST", `/v1/admin/keys/${made.id}`, { limits: { burst: 5 } }));
    expectOk(await world.operator().call("POST", `/v1/admin/accounts/${member.id}/password`, { password: "a new password 2" }));
    expectOk(await world.operator().call("DELETE", `/v1/admin/keys/${made.id}`));
    for (const last of ["adminRevokeKey", "adminChangeAccount"]) await until(`${last} is recorded`, has(member.id, last));
    const { exitCode, stdout, stderr } = await admin.run("audit", "--account", member.email, "--since", "1h", "--json");
    assert.equal(exitCode, 0, stderr);
    const { data } = JSON.parse(stdout) as Page;
    const entries = data.toReversed();
    const shown = entries.map(({ action, outcome, by, operator, account_id, target, target_account_id }) => ({
      ...{ action, outcome, by, operator, account_id, target, target_account_id },
    }));
    const own = { by: "browser", operator: false, account_id: member.id, target_account_id: member.id, outcome: "ok" };
    const operators = { by: "key", operator: true, account_id: adminId, target_account_id: member.id, outcome: "ok" };
    assert.deepEqual(shown.slice(0, 4), [
      { ...own, action: "signUp", target: member.id },
      { ...own, action: "logIn", target: null },
      { ...own, action: "logIn", outcome: "unauthorized", by: "stranger", account_id: null, target: null },
      { ...own, action: "createApiKey", target: made.id },
    ]);
    const byAction = (one: { action: string }, other: { action: string }): number => (one.action < other.action ? -1 : 1);
    // Two gateways store at the same time.
    assert.deepEqual(shown.slice(4).sort(byAction), [
      { ...operators, action: "adminChangeAccount", target: member.id },
      { ...operators, action: "adminChangeKey", target: made.id },
      { ...operators, action: "adminResetPassword", target: member.id },
      { ...operators, action: "adminRevokeKey", target: made.id },
    ]);
    const changes = entries.flatMap(({ change }) => (change ? [change] : []));
    assert.equal(changes.length, 2);
    assert.ok(changes.some((change) => JSON.stringify(change) === '{"tier":"pro","limits":{"sandboxes":3}}'));
    for (const { address, request_id, key_id, by, time } of entries) {
      assert.match(address, /^[\d.:a-f]+$/);
      assert.match(request_id, /^req_/);
      assert.equal(key_id !== null, by === "key");
      assert.ok(Date.now() - Date.parse(time) < 3_600_000);
    }
    for (const secret of [...member.secrets, password, "a new password 2", made.key, world.stack.apiKey, "scrypt"]) assert.ok(!stdout.includes(secret), secret);
    const table = await admin.run("audit", "--account", member.id, "-n", "2");
    assert.match(table.stdout, /^TIME +ACTION +OUTCOME +BY +ACCOUNT +TARGET +ADDRESS +REQUEST\n/);
    assert.deepEqual([table.stdout.split("\n").length, table.stdout.includes("adminRevokeKey")], [3, true]);
  });

  test("an account that an operator creates is recorded with its settings, and without its password", async () => {
    const email = newcomer().email;
    const create = (body: object) => world.operator().call<{ id: string; password: string }>("POST", "/v1/admin/accounts", { email, ...body });
    const { id, password } = expectOk(await create({ tier: "pro", limits: { sandboxes: 3 } }), 201);
    await until("it is recorded", has(id, "adminCreateAccount"));
    const { data } = await read(`?account_id=${id}`);
    assert.deepEqual(
      data.map(({ action, outcome, account_id, target, target_account_id, change }) => ({ action, outcome, account_id, target, target_account_id, change })),
      [
        {
          ...{ action: "adminCreateAccount", outcome: "ok", account_id: adminId, target: id, target_account_id: id },
          change: { tier: "pro", limits: { sandboxes: 3 } },
        },
      ],
    );
    assert.ok(!JSON.stringify(data).includes(password));
    const { headers } = await create({});
    await until("the refusal is recorded", async () => {
      const entries = (await read(`?account_id=${adminId}&limit=20`)).data;
      return entries.find(({ request_id }) => request_id === headers.get("x-request-id"))?.outcome === "conflict";
    });
  });

  test("refused changes are recorded with their outcome; work with sandboxes and reading are not", async () => {
    const member = await world.member();
    expectError(await world.operator().call("POST", `/v1/admin/accounts/${member.id}`, { tier: "gold" }), "invalid_request");
    expectOk(await world.operator().call("GET", `/v1/admin/accounts/${member.id}`));
    const api = new Api({ url: world.stack.url, apiKey: (await member.makeKey()).key });
    const sandbox = await api.create();
    await api.delete(sandbox);
    expectOk(await member.call("POST", "/v1/auth/logout", {}));
    await until("the last is recorded", has(member.id, "logOut"));
    const { data } = await read(`?account_id=${member.id}`);
    assert.deepEqual(data.map(({ action, outcome }) => `${action} ${outcome}`).sort(), [
      "adminChangeAccount invalid_request",
      "createApiKey ok",
      "logIn ok",
      "logOut ok",
      "signUp ok",
    ]);
  });

  test("it is read page by page from any gateway, and by time", async () => {
    const member = await world.member();
    for (const name of ["one", "two", "three"]) await member.makeKey(name);
    await until("all are recorded", async () => (await read(`?account_id=${member.id}`)).data.length === 5);
    const whole = (await read(`?account_id=${member.id}`)).data;
    const first = await read(`?account_id=${member.id}&limit=2`, 1);
    const second = await read(`?account_id=${member.id}&limit=10&cursor=${first.next_cursor}`);
    assert.deepEqual([...first.data, ...second.data], whole);
    const newest = whole[0]?.time ?? assert.fail();
    assert.deepEqual((await read(`?account_id=${member.id}&from=${newest}`)).data, [whole[0]]);
    assert.deepEqual((await read(`?account_id=${member.id}&to=${whole.at(-1)?.time}`)).data, [whole.at(-1)]);
    assert.deepEqual((await read("?account_id=acct_nobody")).data, []);
    for (const [query, message] of [
      ["?limit=0", /^limit must be between 1 and 1000/],
      ["?limit=1001", /^limit must be between 1 and 1000/],
      ["?cursor=x", /^cursor must be the next_cursor/],
      ["?from=yesterday", /^from must be an ISO 8601 time/],
      ["?account=x", /^Unknown query parameter: account$/],
    ] as const) {
      expectError(await world.operator().call("GET", `/v1/admin/audit${query}`), "invalid_request", message);
    }
  });

  test("nobody but operators reads it", async () => {
    const member = await world.member();
    const api = new Api({ url: world.stack.url, apiKey: (await member.makeKey()).key });
    for (const query of ["", `?account_id=${member.id}`]) {
      expectError(await api.call("GET", `/v1/admin/audit${query}`), "forbidden", "Only an operator may do this.");
      expectError(await member.call("GET", `/v1/admin/audit${query}`), "forbidden", "Only an operator may do this.");
    }
  });

  test("--follow goes on with what is recorded from now on", async () => {
    const member = await world.member();
    await until("the log-in is recorded", has(member.id, "logIn"));
    const lines: AuditEntry[] = [];
    const following = admin.start("audit", "--account", member.id, "--follow", "--json");
    createInterface(following.stdout).on("line", (line) => lines.push(JSON.parse(line) as AuditEntry));
    try {
      await until("what was before is shown", () => lines.length === 2);
      const made = await member.makeKey();
      await until("the key is shown", () => lines.some(({ target }) => target === made.id));
      assert.deepEqual(
        lines.map(({ action }) => action),
        ["signUp", "logIn", "createApiKey"],
      );
    } finally {
      following.kill("SIGKILL");
      await following;
    }
  });
}
