/** Live sessions while gateways and workers come and go, and keys end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { closeReasons } from "../../../shared/stream/session/protocol.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark } from "../../helpers/sandboxes.ts";
import { attach, connect, Refused, start } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";
import { Visitor } from "../../helpers/visitor.ts";

const stack = await fixture(startStack({ name: "session-fleet", gateways: 2, settings: { SANDGATE_ACCESS_LOG: "true", SANDGATE_DRAIN_MS: "2000" } }));
const api = new Api(stack);
const other = new Api({ url: stack.urls[1] as string, apiKey: stack.apiKey });
const accounts = await fixture(Accounts.open(stack));
const id = await api.create();

const logs = (): string[] => [stack.worker, ...stack.gateways].flatMap(({ lines }) => lines);

test("a gateway that is killed ends no session: the client goes on through another one", async () => {
  const client = await start(api, id, { command: "cat" });
  client.type("one\n");
  await client.sees("one\n");
  await stack.gateway.kill9();
  assert.equal((await client.closed()).code, 1006);
  const again = await until("the pen is free", async () => {
    const next = await attach(other, id, { session_id: client.id, since: client.next, takeover: true });
    return next.started?.writer ? next : undefined;
  });
  again.type("two\n");
  again.send({ type: "stdin_close" });
  await again.closed();
  assert.deepEqual([again.text[1], again.exit?.exit_code, again.holes], ["two\n", 0, []]);
  await stack.gateway.start();
  await stack.ready();
});

test("a gateway that is asked to stop sends its clients to another one", async () => {
  const client = await start(api, id, { command: "cat" });
  await Promise.all([client.closed(), stack.gateway.stop()]);
  assert.equal(client.close?.code, closeReasons.restart.code);
  const again = await attach(other, id, { session_id: client.id });
  again.send({ type: "kill" });
  await again.closed();
  await stack.gateway.start();
  await stack.ready();
});

test("a token that one gateway made is good at the other, once", async () => {
  const { body } = await api.call<{ token: string }>("POST", `/v1/sandboxes/${id}/session-token`, {});
  const query = `?token=${body.token}`;
  const client = await connect(other, id, { headers: {}, query });
  client.send({ type: "start", command: "echo in" });
  await client.closed();
  assert.equal(client.text[1], "in\n");
  for (const gateway of [api, other]) await assert.rejects(connect(gateway, id, { headers: {}, query }), { status: 401 });
});

test("tokens and keys are in no log, starts and attaches are", async () => {
  const { body } = await api.call<{ token: string }>("POST", `/v1/sandboxes/${id}/session-token`, {});
  const client = await connect(api, id, { headers: {}, query: `?token=${body.token}` });
  client.send({ type: "start", command: "cat" });
  await client.ready();
  const again = await attach(other, id, { session_id: client.id, takeover: true });
  again.send({ type: "kill" });
  await again.closed();
  await until("the lines", () =>
    ["start", "attach", "kill"].every((action) => logs().some((line) => line.includes(client.id) && line.includes(`"session ${action}"`))),
  );
  await until("the access line", () => logs().some((line) => line.includes("token=[redacted]")));
  for (const secret of [body.token, stack.apiKey]) assert.ok(!logs().some((line) => line.includes(secret)));
});

test("a key that is revoked loses its WebSockets at once, on every gateway", async () => {
  const account = await accounts.make();
  const sandbox = await account.api.create();
  const far = new Api({ url: other.url, apiKey: account.api.apiKey });
  const clients = [await start(account.api, sandbox, { command: "cat" }), await start(far, sandbox, { command: "cat" })];
  await account.revoke(account.api.apiKey);
  for (const client of clients) {
    assert.equal((await client.closed()).code, 4401);
    assert.match(client.error?.message ?? "", /revoked/);
  }
});

test("an account that is suspended loses its WebSockets, those by token too", async () => {
  const account = await accounts.make();
  const sandbox = await account.api.create();
  const { body } = await account.api.call<{ token: string }>("POST", `/v1/sandboxes/${sandbox}/session-token`, {});
  const byToken = await connect(account.api, sandbox, { headers: {}, query: `?token=${body.token}` });
  byToken.send({ type: "start", command: "cat" });
  await byToken.ready();
  await account.suspend();
  assert.equal((await byToken.closed()).code, 4403);
});

for (const [name, method, path, body] of [
  ["logs out", "POST", "/v1/auth/logout", () => ({})],
  ["gets a new password", "POST", "/v1/account/password", ({ password }) => ({ current_password: password, new_password: `${password} new` })],
] satisfies [string, string, string, (visitor: Visitor) => object][]) {
  test(`a browser that ${name} loses its WebSockets at once, on every gateway, those by token too`, async () => {
    const visitor = new Visitor(stack.url);
    await visitor.signUp();
    const own = new Api({ url: stack.url, apiKey: (await visitor.makeKey()).key });
    const far = new Api({ url: other.url, apiKey: own.apiKey });
    const sandbox = await own.create();
    const headers = { cookie: visitor.cookie, "x-sandgate-account": visitor.accountId, origin: new URL(stack.url).origin };
    const token = async (): Promise<string> => (await visitor.call<{ token: string }>("POST", `/v1/sandboxes/${sandbox}/session-token`, {})).body.token;
    const clients = [
      await connect(own, sandbox, { headers }),
      await connect(far, sandbox, { headers: { ...headers, origin: new URL(other.url).origin } }),
      await connect(far, sandbox, { headers: {}, query: `?token=${await token()}` }),
    ];
    const byKey = await start(own, sandbox, { command: "cat" });
    for (const client of clients) {
      client.send({ type: "start", command: "cat" });
      await client.ready();
    }
    const unused = await token();
    const { status } = await visitor.call(method, path, body(visitor));
    assert.equal(status, 200);
    for (const client of clients) {
      assert.equal((await client.closed()).code, 4401);
      assert.match(client.error?.message ?? "", /not logged in any more/);
    }
    assert.equal((await connect(far, sandbox, { headers: {}, query: `?token=${unused}` }).catch((error: Refused) => error.status)) as unknown, 401);
    byKey.send({ type: "stdin_close" });
    assert.equal((await byKey.closed()).code, 1000);
    await own.delete(sandbox);
  });
}

test("a flood of messages while the worker has not answered yet is refused", async () => {
  const client = await connect(api, id);
  stack.worker.signal("SIGSTOP");
  try {
    client.send({ type: "start", command: "true" });
    for (let n = 0; n <= 1_000; n++) client.send({ type: "ack", offset: 0 });
    assert.equal((await client.closed()).code, 4429);
    assert.match(client.error?.message ?? "", /at most 1000 messages/);
  } finally {
    stack.worker.signal("SIGCONT");
  }
});

test("a worker that is asked to stop ends its sessions with an error, and without waiting for them", async () => {
  const mark = new Mark();
  const client = await start(api, id, { env: mark.env });
  await stack.worker.stop();
  assert.equal((await client.closed()).code, closeReasons.sessionLost.code);
  assert.deepEqual([client.error?.code, client.error?.message], ["unavailable", "the worker is shutting down"]);
  assert.deepEqual(mark.living(), []);
  const refused = await connect(api, id).catch((error: unknown) => error);
  assert.ok(refused instanceof Refused && refused.status === 503);
  await stack.worker.start();
  await stack.ready();
});

test("a worker that is killed takes its sessions with it, and whoever attaches is told", async () => {
  const mark = new Mark();
  const client = await start(api, id, { command: "sleep 600", env: mark.env });
  await stack.worker.kill9();
  assert.equal((await client.closed()).code, 4503);
  await stack.worker.start();
  await stack.ready();
  await mark.gone();
  const late = await until("the worker", () => connect(api, id).catch(() => undefined));
  late.send({ type: "attach", session_id: client.id });
  assert.equal((await late.closed()).code, 4404);
  assert.match(late.error?.message ?? "", /its worker was restarted/);
  const { body } = await api.call<{ logs: Record<string, unknown>[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${id}`);
  const entry = body.logs.find(({ execution_id }) => execution_id === client.id);
  assert.deepEqual([entry?.status, entry?.error], ["error", "the worker restarted while the command ran"]);
});

test("a lost message bus breaks connections, not sessions", async () => {
  const client = await start(api, id, { command: "cat" });
  await stack.nats.kill9();
  assert.equal((await client.closed()).code, 4503);
  await stack.nats.start();
  await stack.ready();
  const again = await until("the session", async () => {
    const next = await connect(api, id).catch(() => undefined);
    next?.send({ type: "attach", session_id: client.id, since: 0, takeover: true });
    return next?.ready().catch(() => undefined);
  });
  again.type("still\n");
  again.send({ type: "stdin_close" });
  await again.closed();
  assert.equal(again.text[1], "still\n");
});
