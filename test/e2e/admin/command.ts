/** The operator's command against a running installation: every command, for people and as JSON. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts } from "../../helpers/accounts.ts";
import { AdminCommand, type Outcome } from "../../helpers/admin-command.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { until } from "../../helpers/until.ts";
import { Visitor } from "../../helpers/visitor.ts";
import { type AccountView, type AdminWorld, adminId, type PageOf } from "./world.ts";

/** Standard output of a command that has done what it was told. */
function done({ exitCode, stdout, stderr }: Outcome): string {
  assert.equal(exitCode, 0, stderr);
  assert.equal(stderr, "");
  return stdout;
}

const json = <T>(outcome: Outcome): T => JSON.parse(done(outcome)) as T;

export function commandTests(world: AdminWorld): void {
  const admin = fixture(new AdminCommand(world.stack));
  const run = async (...args: string[]): Promise<string> => done(await admin.run(...args));

  test("accounts and account show who there is", async () => {
    const member = await world.member();
    const made = await member.makeKey("listed");
    const table = await run("accounts", "--email", member.email);
    const [titles = "", row = "", ...more] = table.split("\n");
    assert.match(titles, /^ID +E-MAIL +NAME +TIER +LIMITS +KEYS +SANDBOXES +CREATED/);
    assert.ok(row.startsWith(`${member.id}  ${member.email}`) && row.includes("60/min, 10") && row.includes("just now"), row);
    assert.equal(row.indexOf(member.email), titles.indexOf("E-MAIL"), "columns are aligned");
    assert.deepEqual(more, []);
    assert.ok((await run("accounts")).includes(adminId));
    assert.equal(await run("accounts", "--email", "nobody-at-all"), "No accounts.");
    for (const name of [member.email.toUpperCase(), member.id]) {
      const shown = await run("account", name);
      assert.ok(shown.includes(member.email) && shown.includes(made.id) && shown.includes(made.prefix), shown);
      assert.ok(!shown.includes(made.key) && !shown.includes("\u001b"));
      const view = json<AccountView>(await admin.run("account", name, "--json"));
      assert.deepEqual([view.id, view.api_keys?.map(({ id }) => id)], [member.id, [made.id]]);
    }
  });

  test("all pages of a list come as one", async () => {
    await using accounts = await Accounts.open(world.stack);
    // More than the largest page has.
    const made = await Promise.all(Array.from({ length: 101 }, () => accounts.make()));
    const { data, pagination } = json<PageOf<AccountView>>(await admin.run("accounts", "--json"));
    const ids = new Set(data.map(({ id }) => id));
    assert.equal(ids.size, data.length);
    for (const { id } of made) assert.ok(ids.has(id));
    assert.deepEqual(pagination, { page: 1, page_size: data.length, total_items: data.length, total_pages: 1 });
    assert.equal((await run("accounts")).split("\n").length, data.length + 1);
  });

  test("create-account makes an account, and prints its password once", async () => {
    const visitor = new Visitor(world.stack.url);
    const { email } = visitor;
    const text = await run("create-account", email, "--name", "Ada Lovelace", "--requests", "500");
    const [, id = "", password = ""] = /^Account +(acct_\w+)\n.*\n[^\n]* can change it on the web page:\n([\w-]{20})$/s.exec(text) ?? [];
    assert.match(text, /\nName +Ada Lovelace\nTier +beta\nLimits of a key +500 requests\/min, 10 sandboxes \(custom\)\n/);
    assert.equal((await visitor.logIn(email, password)).body.account.id, id);
    assert.ok(!(await run("account", email)).includes(password));
    const again = await admin.run("create-account", email);
    assert.deepEqual([again.exitCode, again.stdout], [1, ""]);
    assert.match(again.stderr, /^sandgate: This e-mail address already has an account\. \(req_\w+\)$/);
    const other = new Visitor(world.stack.url);
    const made = json<AccountView & { password: string }>(await admin.run("create-account", other.email, "--tier", "pro", "--operator", "--json"));
    assert.deepEqual([made.email, made.tier, made.operator], [other.email, "pro", true]);
    assert.equal((await other.logIn(other.email, made.password)).status, 200);
  });

  test("set gives a tier, numbers and the operator's rights", async () => {
    const member = await world.member();
    assert.match(await run("set", member.email, "--tier", "pro"), /Tier +pro\nLimits of a key +300 requests\/min, 50 sandboxes\n/);
    assert.match(await run("set", member.id, "--requests", "500", "--burst=50", "--sandboxes", "0"), /500 requests\/min, 50 at once, 0 sandboxes \(custom\)/);
    const changed = json<AccountView>(await admin.run("set", member.email, "--default-limits", "--operator", "--json"));
    assert.deepEqual([changed.custom_limits, changed.operator, changed.tier], [null, true, "pro"]);
    assert.match(await run("set", member.email, "--no-operator"), /Status +active/);
  });

  test("suspend and resume", async () => {
    const member = await world.member();
    assert.equal(await run("suspend", member.email, "--yes"), `${member.email} (${member.id}) is suspended.`);
    await until("it is refused", async () => (await member.call("GET", "/v1/account")).status === 403);
    assert.match(await run("accounts", "--email", member.email), /suspended$/);
    assert.equal(json<AccountView>(await admin.run("resume", member.id, "--json")).suspended, false);
    await until("it may call again", async () => (await member.call("GET", "/v1/account")).status === 200);
  });

  test("keys, set-key and revoke", async () => {
    const member = await world.member();
    const [one, other] = [await member.makeKey("one"), await member.makeKey("other")];
    assert.match(await run("set-key", one.id, "--tier", "pro", "--sandboxes", "3"), /^key_\w+ \(one\): pro, 300 requests\/min, 3 sandboxes \(custom\)$/);
    assert.match(await run("set-key", one.id, "--default-tier", "--default-limits"), /: beta, 60 requests\/min, 10 sandboxes$/);
    const list = await run("keys", "--account", member.email);
    assert.match(list, /^ID +KEY +NAME +ACCOUNT/);
    assert.ok(list.includes(`${one.prefix}…  one`) && list.includes("never") && !list.includes(one.key), list);
    assert.equal(await run("revoke", one.id, other.id, "-y"), `${one.id} is revoked.\n${other.id} is revoked.`);
    const { data } = json<PageOf<{ id: string; revoked_at: string | null }>>(await admin.run("keys", "--account", member.id, "--json"));
    assert.deepEqual([data.length, data.filter(({ revoked_at }) => revoked_at).length], [2, 2]);
    const mixed = await admin.run("revoke", "key_none", one.id, "--yes");
    assert.deepEqual([mixed.exitCode, mixed.stdout], [1, `${one.id} is revoked.`]);
    assert.match(mixed.stderr, /^sandgate: API key not found: key_none \(req_\w+\)$/);
  });

  test("workers, drain and its undoing", async () => {
    const id = world.stack.worker.spec.env.SANDGATE_WORKER_ID ?? "";
    assert.match(await run("workers"), /^ID +STATUS +SANDBOXES +FREE MEMORY/);
    assert.equal(await run("drain", id), `${id}: The worker takes no new sandboxes.`);
    await until("it is shown", async () => new RegExp(`^${id} +drained`, "m").test(await run("workers")));
    assert.equal(json<{ cordoned: boolean }>(await admin.run("drain", id, "--undo", "--json")).cordoned, false);
    await until("it is up", async () => {
      const { data } = json<{ data: { id: string; cordoned: boolean }[] }>(await admin.run("workers", "--json"));
      return data.find((worker) => worker.id === id)?.cordoned === false;
    });
    const present = await admin.run("forget", id, "--yes");
    assert.deepEqual([present.exitCode, present.stdout], [1, ""]);
    assert.match(present.stderr, /^sandgate: This worker is there; stop it first\. \(req_\w+\)$/);
  });

  test("sandboxes and delete", async () => {
    const member = await world.member();
    const api = new Api({ url: world.stack.url, apiKey: (await member.makeKey()).key });
    const [one, other] = [await api.create({ name: "listed" }), await api.create()];
    const list = await run("sandboxes", "--account", member.email);
    assert.match(list, new RegExp(`^${one} +listed +running +${member.id} `, "m"));
    const { data } = json<PageOf<{ id: string; worker_id: string }>>(await admin.run("sandboxes", "--account", member.id, "--json"));
    assert.deepEqual(
      data.map(({ id }) => id),
      [other, one],
    );
    assert.ok((await run("sandboxes", "--worker", data[1]?.worker_id ?? "")).includes(one));
    assert.equal(json<{ id: string }>(await admin.run("delete", one, "--yes", "--json")).id, one);
    assert.equal(await run("delete", other, "--yes"), `${other} is deleted.`);
    assert.equal(await run("sandboxes", "--account", member.id), "No sandboxes.");
  });
}
