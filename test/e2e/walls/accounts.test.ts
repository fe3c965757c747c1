/** A second account, in a second tab of the same browser: over plain HTTP, with the cookie of one and a page of the other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { hashKey } from "../../../gateway/accounts/keys.ts";
import type { CallRoute } from "../../../gateway/api/route.ts";
import { routes } from "../../../gateway/api/routes.ts";
import { idempotencyMs } from "../../../gateway/limit/idempotency.ts";
import { BucketWriter } from "../../../shared/bus/kv.ts";
import type { Bus } from "../../../shared/bus/nats.ts";
import { buckets } from "../../../shared/bus/subjects.ts";
import { loadConfig } from "../../../shared/config.ts";
import { KeyRecord, SessionRecord } from "../../../shared/schemas/records.ts";
import { checker } from "../../../shared/schemas/validate.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Api, chunksOf } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { atEnd } from "../../helpers/fixture.ts";
import { changeAccount, logIn, type Member, signUp } from "../../helpers/members.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { connect, refusal, type SessionClient } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const { url, natsUrl } = sharedStack();
const origin = new URL(url).origin;
interface ErrorBody {
  readonly error?: { readonly code?: string; readonly reason?: string; readonly message?: string };
}
const nobody = new Api({ url, apiKey: "" });

let [ann, bob] = await Promise.all([signUp(url, "Ann"), signUp(url, "Bob")]);
atEnd(() => bob.clear());
await Promise.all([ann, bob].map((member) => changeAccount(natsUrl, member, { tier: "enterprise", operator: true })));
const sandbox = (await bob.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" })).id;

const isCall = (route: (typeof routes)[number]): route is CallRoute => route.access !== "open";
/** Every call that a logged-in browser can make. */
const callsOfBrowsers = routes.filter(isCall).filter(({ access }) => access !== "anyone");
/** Bob's sandbox where a call is about one. */
const pathOf = ({ path }: CallRoute): string => path.replace(":id", path.startsWith("/v1/sandboxes/") ? sandbox : newId("snapshot"));

async function answerTo(route: CallRoute, headers: Record<string, string>): Promise<{ status: number; reason: unknown; code: unknown }> {
  const { status, body } = await nobody.call<ErrorBody>(route.method, pathOf(route), undefined, headers);
  return { status, reason: body.error?.reason, code: body.error?.code };
}

test("makes each call of the API from a page of another account than the one that is logged in", async () => {
  assert.ok(callsOfBrowsers.length > 35, String(callsOfBrowsers.length));
  for (const route of callsOfBrowsers) {
    const answer = await answerTo(route, { ...bob.headers, "x-sandgate-account": ann.accountId });
    assert.deepEqual(answer, { status: 403, reason: "other_account", code: "forbidden" }, `${route.method} ${route.path}`);
  }
  assert.equal((await bob.call<{ data: unknown[] }>("GET", "/v1/sandboxes/list")).data.length, 1);
});

test("makes each call of the API with a cookie and without saying for which account", async () => {
  const { "x-sandgate-account": _, ...unnamed } = bob.headers;
  for (const route of callsOfBrowsers) {
    const { status, reason } = await answerTo(route, unnamed);
    if (route.asksWho) assert.equal(status, 200, route.path);
    else assert.deepEqual([status, reason], [403, "other_account"], `${route.method} ${route.path}`);
  }
  assert.deepEqual(
    callsOfBrowsers.filter(({ asksWho }) => asksWho).map(({ method, path }) => `${method} ${path}`),
    ["GET /v1/account"],
  );
});

test("names two accounts at once, in the header and in the address", async () => {
  const path = `/v1/sandboxes/${sandbox}/download?path=/etc/hostname&account=`;
  const named = (account: string, inAddress: string) => nobody.raw("GET", path + inAddress, undefined, { ...bob.headers, "x-sandgate-account": account });
  assert.equal((await named(ann.accountId, bob.accountId)).status, 403);
  const twice = await nobody.raw("GET", `${path}${ann.accountId}&account=${bob.accountId}`, undefined, { cookie: bob.headers.cookie ?? "" });
  assert.equal(twice.status, 403);
});

test("opens a terminal or a download in an address of another account's page", async () => {
  const cookie = { cookie: bob.headers.cookie ?? "", origin };
  for (const query of ["", `?account=${ann.accountId}`, "?account="]) {
    assert.deepEqual((await refusal(connect(nobody, sandbox, { headers: cookie, query }))).slice(0, 2), [403, "forbidden"], query);
    const download = await nobody.raw("GET", `/v1/sandboxes/${sandbox}/download${query || "?"}&path=/etc/hostname`, undefined, cookie);
    assert.equal(download.status, 403, query);
  }
});

test("control: a page of the account that is logged in may do all of this, and an API key names no account", async () => {
  for (const route of callsOfBrowsers.filter(({ method, socket }) => method === "GET" && !socket)) {
    const { status, code } = await answerTo(route, bob.headers);
    assert.ok(status < 500 && code !== "forbidden", `${route.path}: ${status}`);
  }
  const terminal = await terminalOf(bob);
  terminal.cut();
  const { key } = await bob.call<{ key: string }>("POST", "/v1/account/keys", {});
  assert.equal((await new Api({ url, apiKey: key }).call("GET", "/v1/sandboxes/list")).status, 200);
});

async function terminalOf(member: Member): Promise<SessionClient> {
  const client = await connect(nobody, sandbox, { headers: { cookie: member.headers.cookie ?? "", origin }, query: `?account=${member.accountId}` });
  client.send({ type: "start", command: "cat" });
  await client.ready();
  return client;
}

async function onBus<T>(work: (bus: Bus) => Promise<T>): Promise<T> {
  await using bus = await connectBus(natsUrl, "test-walls");
  return await work(bus);
}

function changeSession(member: Member, change: Partial<SessionRecord>): Promise<unknown> {
  return onBus(async (bus) => {
    const sessions = await BucketWriter.open(bus, buckets.sessions, checker(SessionRecord));
    return sessions.change(hashKey(member.cookie.value), (record) => ({ ...record, ...change }));
  });
}

const over = [4401, "This browser is not logged in any more."] as const;
const ends: readonly [what: string, end: (member: Member) => Promise<unknown>, close: readonly [code: number, reason: string]][] = [
  ["a log-out", (member) => member.call("POST", "/v1/auth/logout"), over],
  ["a log-in of another account in the same browser", (member) => logIn(url, ann, member.headers.cookie), over],
  ["the log-in's expiry", (member) => changeSession(member, { expires_at_ms: Date.now() + 500 }), over],
  ["a suspension", (member) => changeAccount(natsUrl, member, { suspended: true }), [4403, "This account is suspended."]],
  ["a new password", changePassword, over],
];

/** All log-ins of Bob's end with it. */
async function changePassword(member: Member): Promise<void> {
  const { email, password } = member;
  const next = { email, password: `${password} again` };
  await member.call("POST", "/v1/account/password", { current_password: password, new_password: next.password });
  bob = await logIn(url, next);
}

for (const [what, end, close] of ends) {
  test(`goes on with a terminal, a stream and a download of a browser after ${what}`, async () => {
    const member = await logIn(url, bob);
    await member.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: "truncate -s 1G /root/large" });
    const terminal = await terminalOf(member);
    const headers = { ...member.headers, "content-type": "application/json" };
    const stream = chunksOf(await nobody.raw("POST", `/v1/sandboxes/${sandbox}/execute_async`, JSON.stringify({ command: "echo begun; sleep 600" }), headers));
    assert.deepEqual((await stream.next()).value, { stdout: "begun\n" });
    const download = await nobody.raw("GET", `/v1/sandboxes/${sandbox}/download?path=/root/large`, undefined, headers);
    assert.equal(download.status, 200);
    try {
      await end(member);
      const { code: closeCode, reason } = await terminal.closed();
      assert.deepEqual([closeCode, reason], close);
      const { error, code } = (await stream.next()).value ?? {};
      assert.deepEqual([error, code], [close[1], close === over ? "unauthorized" : "forbidden"]);
      await assert.rejects(download.arrayBuffer(), "the download was whole");
    } finally {
      await changeAccount(natsUrl, member, { suspended: false });
    }
    await until("the account is there again", async () => (await nobody.call("GET", "/v1/account", undefined, bob.headers)).status === 200);
  });
}

test("control: a key that was revoked long ago is answered like one that there never was", async () => {
  const { id, key } = await bob.call<{ id: string; key: string }>("POST", "/v1/account/keys", {});
  await bob.call("DELETE", `/v1/account/keys/${id}`);
  const messageTo = async (apiKey: string): Promise<string> => (await new Api({ url, apiKey }).call<ErrorBody>("GET", "/v1/account")).body.error?.message ?? "";
  assert.equal(await messageTo(key), "This API key has been revoked.");
  await onBus(async (bus) => {
    const keys = await BucketWriter.open(bus, buckets.keys, checker(KeyRecord));
    await keys.change(hashKey(key), (record) => ({ ...record, revoked_at_ms: Date.now() - 31 * 86_400_000 }));
  });
  const unknown = await messageTo(`sg_${"x".repeat(48)}`);
  await until("the key is forgotten", async () => (await messageTo(key)) === unknown, 60_000);
  const { data } = await bob.call<{ data: { id: string }[] }>("GET", "/v1/account/keys");
  assert.ok(!data.some((listed) => listed.id === id));
});

test("control: log-ins, and answers kept for repeated calls, go by their age", async () => {
  await onBus(async (bus) => {
    const { streams } = await jetstreamManager(bus.connection);
    for (const [bucket, ms] of [
      [buckets.sessions, loadConfig({}).sessionMs],
      [buckets.idempotency, idempotencyMs],
    ] as const) {
      assert.equal((await streams.info(`KV_${bucket}`)).config.max_age, ms * 1_000_000, bucket);
    }
  });
});

test("finds an answer of the API, whatever it says, in a cache", async () => {
  const keyed = { ...bob.headers };
  const asked: [method: string, path: string, headers?: Record<string, string>][] = [
    ...routes
      .filter(isCall)
      .flatMap((route): [string, string, Record<string, string>?][] => [
        [route.method, pathOf(route)],
        ...(route.method === "GET" && !route.socket ? [[route.method, pathOf(route), keyed] as [string, string, Record<string, string>]] : []),
      ]),
    ["GET", `/v1/sandboxes/${sandbox}/download?path=/etc/hostname`, keyed],
    ["HEAD", `/v1/sandboxes/${sandbox}/download?path=/etc/hostname`, keyed],
    ["GET", "/v1/nothing"],
    ["PUT", "/v1/account"],
    ["OPTIONS", "/v1/account"],
    ["GET", "/healthz"],
    ["GET", "/readyz"],
    ["GET", "/sandboxes"],
    ["GET", "/nothing"],
    ["GET", "/v1/account", { "content-encoding": "gzip" }],
    ["POST", "/v1/auth/login", { "x-api-key": "one, two" }],
  ];
  for (const [method, path, headers] of asked) {
    const answer = await nobody.raw(method, path, undefined, headers);
    await answer.arrayBuffer();
    assert.equal(answer.headers.get("cache-control"), "no-store", `${method} ${path}: ${answer.status}`);
  }
  const wire = await Connection.open(url);
  const refused = await wire.send("GET /v1/account HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n").answer();
  wire.cut();
  assert.equal(refused.status, 400);
  assert.equal(refused.headers.get("cache-control"), "no-store");
});
