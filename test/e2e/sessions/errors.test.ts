/** What a client of live sessions can do wrong, and who may open one. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import WebSocket from "ws";
import { subprotocol } from "../../../shared/stream/session/protocol.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { attach, connect, refusal, type SessionClient, start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { Visitor } from "../../helpers/visitor.ts";

const stack = sharedStack();
const api = new Api(stack);
const sandboxes = fixture(new Sandboxes(api));

const accounts = await fixture(Accounts.open(stack));
const id = await sandboxes.make();

const mistakes: Record<string, { does: (client: SessionClient) => void; code: number; error: string; says: RegExp }> = {
  "text that is no JSON": { does: (client) => client.ws.send("{"), code: 4400, error: "invalid_request", says: /not valid JSON/ },
  "an unknown type": { does: (client) => client.send({ type: "nope" }), code: 4400, error: "invalid_request", says: /unknown message type: nope/ },
  "a field of a wrong type": { does: (client) => client.send({ type: "start", command: 1 }), code: 4400, error: "invalid_request", says: /command must be/ },
  "control before the start": {
    does: (client) => client.send({ type: "resize", cols: 1, rows: 1 }),
    code: 4400,
    error: "invalid_request",
    says: /must come first/,
  },
  "input before the start": { does: (client) => client.type("x"), code: 4400, error: "invalid_request", says: /must come before input/ },
  "an attach to what is not there": {
    does: (client) => client.send({ type: "attach", session_id: "sess_nothing" }),
    code: 4404,
    error: "not_found",
    says: /Session not found/,
  },
  "a command that is too long": {
    does: (client) => client.send({ type: "start", command: "x".repeat(131_073) }),
    code: 4400,
    error: "invalid_request",
    says: /command must be at most 131072 bytes/,
  },
};
for (const [name, { does, code, error, says }] of Object.entries(mistakes)) {
  test(`${name} gets an error and a close code`, async () => {
    const client = await connect(api, id);
    does(client);
    const closed = await client.closed();
    assert.equal(closed.code, code);
    assert.deepEqual(
      client.messages.map(({ type }) => type),
      ["error"],
    );
    assert.equal(client.error?.code, error);
    assert.match(client.error?.message ?? "", says);
  });
}

const laterMistakes: typeof mistakes = {
  "a second start": { does: (client) => client.send({ type: "start" }), code: 4400, error: "invalid_request", says: /can only come first/ },
  "a frame that is too large": { does: (client) => client.ws.send(Buffer.alloc(65_537)), code: 4413, error: "payload_too_large", says: /at most 65536 bytes/ },
  "a frame on another channel": { does: (client) => client.ws.send(Buffer.from([1, 2])), code: 4400, error: "invalid_request", says: /channel 0/ },
  "an empty frame": { does: (client) => client.ws.send(Buffer.alloc(0)), code: 4400, error: "invalid_request", says: /channel 0/ },
  "a signal that is none": {
    does: (client) => client.send({ type: "signal", signal: "SIGNOPE" }),
    code: 4400,
    error: "invalid_request",
    says: /no signal SIGNOPE/,
  },
  "an ack of what was not sent": { does: (client) => client.send({ type: "ack", offset: 1_000 }), code: 4400, error: "invalid_request", says: /not sent yet/ },
};
for (const [name, { does, code, error, says }] of Object.entries(laterMistakes)) {
  test(`${name} gets an error and a close code, and the session lives on`, async () => {
    const client = await start(api, id, { command: "cat" });
    does(client);
    assert.equal((await client.closed()).code, code);
    assert.equal(client.error?.code, error);
    assert.match(client.error?.message ?? "", says);
    const again = await attach(api, id, { session_id: client.id });
    again.send({ type: "kill" });
    await again.closed();
  });
}

test("a message beyond all bounds breaks the connection", async () => {
  const client = await connect(api, id);
  client.ws.send(Buffer.alloc(2 * 1024 * 1024));
  assert.equal((await client.closed()).code, 1006);
});

test("a refusal is an HTTP answer like any other", async () => {
  const key = { "x-api-key": api.apiKey };
  assert.deepEqual((await refusal(connect(api, id, { protocols: [] }))).slice(0, 2), [400, "invalid_request"]);
  assert.deepEqual((await refusal(connect(api, id, { protocols: ["other"] }))).slice(0, 2), [400, "invalid_request"]);
  assert.deepEqual((await refusal(connect(api, id, { headers: {} }))).slice(0, 2), [401, "unauthorized"]);
  assert.deepEqual((await refusal(connect(api, id, { headers: { "x-api-key": "sg_wrong" } }))).slice(0, 2), [401, "unauthorized"]);
  assert.deepEqual((await refusal(connect(api, "sb_01m7zq2p2evrswcsmtkq37pjgj", { headers: key }))).slice(0, 2), [404, "not_found"]);
  const plain = await api.call<{ error: { code: string } }>("GET", `/v1/sandboxes/${id}/session`);
  assert.deepEqual([plain.status, plain.body.error.code], [400, "invalid_request"]);
});

test("another account's sandbox is not found", async () => {
  const stranger = (await accounts.make()).api;
  assert.deepEqual((await refusal(connect(stranger, id))).slice(0, 2), [404, "not_found"]);
  const token = await stranger.call("POST", `/v1/sandboxes/${id}/session-token`, {});
  assert.equal(token.status, 404);
  assert.equal((await stranger.call("GET", `/v1/sandboxes/${id}/sessions`)).status, 404);
});

test("a key may come in the query", async () => {
  const client = await connect(api, id, { headers: {}, query: `?api_key=${api.apiKey}` });
  client.cut();
});

async function token(body: object = {}): Promise<string> {
  const answer = await api.call<{ token: string; expires_at: string }>("POST", `/v1/sandboxes/${id}/session-token`, body);
  assert.equal(answer.status, 200);
  assert.deepEqual(Object.keys(answer.body).sort(), ["expires_at", "token"]);
  const lifeMs = Date.parse(answer.body.expires_at) - Date.now();
  assert.ok(lifeMs > 30_000 && lifeMs <= 60_000, `${lifeMs}`);
  return answer.body.token;
}

const byToken = (value: string, sandbox = id): Promise<SessionClient> => connect(api, sandbox, { headers: {}, query: `?token=${value}` });

test("a token opens one connection and no second one", async () => {
  const value = await token();
  const client = await byToken(value);
  client.send({ type: "start", command: "echo in" });
  await client.closed();
  assert.equal(client.text[1], "in\n");
  assert.deepEqual((await refusal(byToken(value))).slice(0, 2), [401, "unauthorized"]);
  assert.deepEqual((await refusal(byToken(`sgt_gw_01k9zpt0v1w2x3y4z5a6b7c8d9_${randomBytes(32).toString("base64url")}`))).slice(0, 2), [401, "unauthorized"]);
  assert.deepEqual((await refusal(byToken("nonsense"))).slice(0, 2), [401, "unauthorized"]);
});

test("of many who use a token at once, one gets in", async () => {
  const value = await token();
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => byToken(value)));
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
  for (const outcome of outcomes) if (outcome.status === "fulfilled") outcome.value.cut();
});

test("a token is for its sandbox, and for its session where it names one", async () => {
  const other = await sandboxes.make();
  assert.deepEqual((await refusal(byToken(await token(), other))).slice(0, 2), [403, "forbidden"]);
  const [shared, secret] = [await start(api, id, { command: "cat" }), await start(api, id, { command: "cat" })];
  for (const message of [{ type: "attach", session_id: secret.id }, { type: "start" }]) {
    const client = await byToken(await token({ session_id: shared.id }));
    client.send(message);
    assert.equal((await client.closed()).code, 4403);
  }
  const client = await byToken(await token({ session_id: shared.id }));
  client.send({ type: "attach", session_id: shared.id, takeover: true });
  assert.equal((await client.ready()).started?.writer, true);
  for (const one of [client, secret]) {
    one.send({ type: "kill" });
    await one.closed();
  }
});

test("a token that may only read can neither write nor take over, also where nobody writes", async () => {
  const writer = await start(api, id, { command: "cat" });
  writer.send({ type: "detach" });
  await writer.closed();
  const attempts = [
    (client: SessionClient) => client.type("x"),
    ...[{ type: "resize", cols: 1, rows: 1 }, { type: "signal", signal: "TERM" }, { type: "stdin_close" }, { type: "kill" }].map(
      (message) => (client: SessionClient) => client.send(message),
    ),
  ];
  for (const attempt of attempts) {
    const reader = await byToken(await token({ read_only: true }));
    reader.send({ type: "attach", session_id: writer.id });
    assert.equal((await reader.ready()).started?.writer, false);
    attempt(reader);
    assert.equal((await reader.closed()).code, 4403);
  }
  for (const message of [{ type: "attach", session_id: writer.id, takeover: true }, { type: "start" }]) {
    const reader = await byToken(await token({ read_only: true }));
    reader.send(message);
    assert.equal((await reader.closed()).code, 4403);
  }
  const again = await attach(api, id, { session_id: writer.id });
  assert.equal(again.started?.writer, true);
  again.send({ type: "kill" });
  await again.closed();
});

test("a browser gets in from our own pages and from no other", async () => {
  const visitor = new Visitor(stack.url);
  await visitor.signUp();
  const own = new Api({ url: stack.url, apiKey: (await visitor.makeKey()).key });
  const sandbox = await own.create();
  try {
    const origin = new URL(stack.url).origin;
    const cookie = { cookie: visitor.cookie, "x-sandgate-account": visitor.accountId };
    const client = await connect(own, sandbox, { headers: { ...cookie, origin } });
    client.send({ type: "start", command: "echo browser" });
    await client.closed();
    assert.equal(client.text[1], "browser\n");
    for (const headers of [{ ...cookie, origin: "https://evil.example" }, { ...cookie, origin: "null" }, cookie]) {
      assert.deepEqual((await refusal(connect(own, sandbox, { headers }))).slice(0, 2), [403, "forbidden"]);
    }
  } finally {
    await own.delete(sandbox);
  }
});

test("a client that offers several subprotocols gets ours", async () => {
  const client = await connect(api, id, { protocols: ["other", subprotocol] });
  assert.equal(client.ws.protocol, subprotocol);
  assert.equal(client.ws.readyState, WebSocket.OPEN);
  client.cut();
});
