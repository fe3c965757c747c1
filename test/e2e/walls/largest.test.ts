/**
 * The largest and the oddest value of every field through every call, as the table of routes and the schemas declare them:
 * a new route is tried by itself. Each call is answered in order, and nothing that anybody sends ends a process.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallRoute, Route } from "../../../gateway/api/route.ts";
import { routes } from "../../../gateway/api/routes.ts";
import { readHeaders } from "../../../gateway/http/head.ts";
import { type ErrorCode, statusOf } from "../../../shared/errors.ts";
import { ClientMessage } from "../../../shared/schemas/sessions.ts";
import { Semaphore } from "../../../shared/util/mutex.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { type Answer, Api } from "../../helpers/api.ts";
import { expectError } from "../../helpers/expect.ts";
import { objectsOf, smallestOf } from "../../helpers/extremes.ts";
import { fixture } from "../../helpers/fixture.ts";
import { signUp } from "../../helpers/members.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { connect } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { Witness } from "../../helpers/witness.ts";

type Headers = Record<string, string>;

/** A URL that fits into the head of a request together with its headers. */
const urlCharsMax = 20_000;
const callsAtOnce = 6;
/** More than those calls make of one sandbox each; calls that ask for many more are refused. */
const sandboxesMax = 20;
/** What a path may have where it names something. */
const oddIds = ["..", "%00", "%ff", "__proto__", "a".repeat(4_096), "sb_%F0%9F%98%80", "%2e%2e%2f", "sb_00000000000000000000000000", "%E2%80%A8"];
const oddQueries = ["%ff=%ff", "=", "&&&", "__proto__=1", "a=1&a=2", `${"a".repeat(16_000)}=1`];
const oddHeaders = ["", "a".repeat(12_000), "\xff\xfe", ",".repeat(3_000), ";=".repeat(3_000), '"', "\t", "%00", "99999999999999999999", "-1", "*/*;q=NaN"];
/** Where a body begins and ends, which attacks of their own are about. */
const framing: readonly string[] = ["content-length", "transfer-encoding"];

const slots = new Semaphore(callsAtOnce);
const callRoutes = routes.filter((route): route is CallRoute => route.access !== "open");

// An image that is not here is not looked for elsewhere, and what is archived is no call's.
const settings = { SANDGATE_IMAGE_PULL: "false", SANDGATE_SNAPSHOT_ARCHIVE: "false" };
const stack = await fixture(startStack({ name: "largest", settings }));
const accounts = await fixture(Accounts.open(stack));
const [attacker, operator] = [await accounts.make("attacker"), await accounts.make("operator")];
const victim = await accounts.make("victim");
await new Api(stack).call("POST", `/v1/admin/accounts/${operator.id}`, { operator: true });
const sandbox = await attacker.api.create();
const { body: snapshot } = await attacker.api.call<{ id: string }>("POST", `/v1/sandboxes/${sandbox}/snapshot`, {});
const { body: workers } = await new Api(stack).call<{ data: { id: string }[] }>("GET", "/v1/admin/workers");
const worker_id = workers.data[0]?.id ?? "";
/** Ids of everything that there is, one of each kind. */
const ids = [sandbox, snapshot.id, victim.id, await accounts.idOfKey(victim.api.apiKey), worker_id];
const known = {
  image: ["default"],
  command: ["true"],
  path: ["/tmp/a"],
  email: ["ada@example.com"],
  sandbox_id: [sandbox],
  account_id: [victim.id],
  worker_id: [worker_id],
};
const witness = await Witness.begin(stack, (await accounts.make("neighbour")).api);

/** A key, or a browser, that has all of its calls before it. */
async function callerOf({ access }: CallRoute): Promise<Headers> {
  if (access === "anyone") return {};
  if (access !== "person")
    return { "x-api-key": (await (access === "operator" ? operator : attacker).addKey({ tier: "enterprise", limits: { sandboxes: sandboxesMax } })).apiKey };
  const { cookie, csrfToken } = await signUp(stack.url);
  return { cookie: `${cookie.name}=${cookie.value}`, "x-csrf-token": csrfToken };
}

/** One call, whose answer is one that the API has. */
async function expectAnswered({ method, body: kind }: Pick<CallRoute, "method" | "body">, path: string, headers: Headers, body?: string): Promise<Answer> {
  const type: Headers = body === undefined ? {} : { "content-type": kind === "file" ? "application/octet-stream" : "application/json" };
  // A connection that is kept may be closed by the server, idle for long, while the next call is on its way.
  const once: Headers = { connection: "close" };
  const response = await fetch(stack.url + path, { method, headers: { ...once, ...type, ...headers }, ...(body === undefined ? {} : { body }) });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const answer = { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  expectInOrder(answer, `${method} ${path.slice(0, 200)} ${body?.slice(0, 200)}`);
  return answer;
}

function expectInOrder(answer: Answer<unknown>, what: string): void {
  if (answer.status >= 200 && answer.status < 300) return;
  const { code } = (answer.body as { error?: { code?: ErrorCode } }).error ?? {};
  assert.ok(code !== undefined && code in statusOf && code !== "internal_error", `${what} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  expectError(answer, code);
}

const all = <T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<unknown> => Promise.all(items.map((item) => slots.run(() => work(item))));

function queryOf(fields: object): string {
  const text = new URLSearchParams(
    Object.entries(fields).map(([name, value]): [string, string] => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
  return `?${text}`;
}

/** The least that is sent with a call. */
function smallestSendingOf({ query, body, method }: CallRoute): { query: string; body?: string } {
  const asked = queryOf(smallestOf(query.schema, known));
  if (method === "GET") return { query: asked };
  return { query: asked, body: body === "file" ? "a" : JSON.stringify(smallestOf(body.schema, known)) };
}

/** All that is sent as the query and the body of a call. The smallest one comes first. */
function sendingsOf({ query, body, method }: CallRoute, takenMax?: number): { query: string; body?: string }[] {
  const queries = [...new Set(objectsOf(query.schema, known).map(queryOf)), ...oddQueries.map((text) => `?${text}`)];
  const smallest = queries[0] as string;
  const asked = queries.filter(({ length }) => length < urlCharsMax).map((text) => ({ query: text }));
  if (method === "GET") return asked;
  const bodies = body === "file" ? [] : objectsOf(body.schema, known, takenMax).map((fields) => ({ query: smallest, body: JSON.stringify(fields) }));
  const odd = ["", "null", "[]", '"a"', "1e400", "{", "[".repeat(50_000), `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`, "\ufeff{}", "{}\u0000"];
  const first = bodies[0]?.body ?? "a";
  const texts = [...bodies.slice(1).map((one) => one.body), ...odd];
  return [
    { query: smallest, body: first },
    ...asked.slice(1).map((one) => ({ ...one, body: first })),
    ...texts.map((text) => ({ query: smallest, body: text })),
  ];
}

/** The path of a route with each of the names in place of `:id`. */
const pathsOf = ({ path }: Route, ids: readonly string[]): string[] => (path.includes(":id") ? ids.map((id) => path.replace(":id", id)) : [path]);

/** Of the things that there are, the one that the call is about, and what the smallest call of it was answered. */
async function ownPath(route: CallRoute, headers: Headers): Promise<{ path: string; status: number }> {
  const { query, body } = smallestSendingOf(route);
  let last = { path: "", status: 0 };
  for (const path of pathsOf(route, ids)) {
    last = { path, status: (await expectAnswered(route, path + query, headers, body)).status };
    if (last.status !== statusOf.not_found) break;
  }
  return last;
}

interface Made {
  readonly id?: string;
  readonly sandbox?: { readonly id: string };
  readonly data?: readonly { readonly sandbox?: { readonly id: string } }[];
}

/** The sandboxes that a call has made: one, a clone, or the copies of a fork. */
function sandboxesIn({ id = "", sandbox, data = [] }: Made): string[] {
  return [...(id.startsWith("sb_") ? [id] : []), ...[sandbox, ...data.map((copy) => copy.sandbox)].flatMap((one) => one?.id ?? [])];
}

async function expectRouteHolds(route: CallRoute): Promise<void> {
  const headers = await callerOf(route);
  const smallest = smallestSendingOf(route);
  await all(pathsOf(route, oddIds), (path) => expectAnswered(route, path + smallest.query, headers, smallest.body));
  // What is deleted once is not there for the next try.
  const lost = { path: pathsOf(route, oddIds).at(-2) as string, status: statusOf.not_found };
  const { path, status: first } = route.method === "DELETE" ? lost : await ownPath(route, headers);
  // Each call that makes something takes its time.
  const sendings = sendingsOf(route, first === 201 ? 1 : undefined);
  await all(sendings, async ({ query, body }) => {
    const { status, body: made } = await expectAnswered(route, path + query, headers, body);
    if (status === 201) await Promise.all(sandboxesIn(made as Made).map((id) => attacker.api.delete(id)));
  });
}

for (const method of ["POST", "GET", "DELETE"]) {
  for (const route of callRoutes.filter((one) => one.method === method && !(method === "DELETE" && !one.path.includes(":id")))) {
    test(`sends ${method} ${route.path} the largest and the oddest of everything`, async () => {
      await expectRouteHolds(route);
      await witness.expectUnharmed();
    });
  }
}

for (const schema of ClientMessage.anyOf) {
  const type = schema.properties.type.const;
  test(`sends a live session the largest and the oddest ${type}`, async () => {
    const isFirst = type === "start" || type === "attach";
    await all(objectsOf(schema, known), async (message) => {
      const client = await connect(attacker.api, sandbox);
      if (!isFirst) client.send({ type: "start", command: "cat" });
      client.send(message);
      client.send({ type: "kill" });
      await client.closed();
      client.cut();
    });
    await witness.expectUnharmed();
  });
}

test("sends the largest and the oddest of every header that is read", async () => {
  const { host } = new URL(stack.url);
  const tries = Object.keys(readHeaders)
    .filter((name) => !framing.includes(name))
    .flatMap((name) => oddHeaders.map((value) => ({ [name]: value })));
  await all(tries, async (header) => {
    for (const [method, path, body] of [
      ["GET", "/v1/account"],
      ["POST", `/v1/sandboxes/${sandbox}/session-token`, "{}"],
    ] as const) {
      const wire = await Connection.open(stack.url);
      const lines = Object.entries({ host, "x-api-key": attacker.api.apiKey, connection: "close", ...header }).map(([name, value]) => `${name}: ${value}\r\n`);
      const length = body === undefined ? "" : `content-length: ${body.length}\r\n`;
      wire.send(Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}${length}\r\n${body ?? ""}`, "latin1"));
      expectInOrder(await wire.answer(), `${method} ${path} with ${JSON.stringify(header).slice(0, 100)}`);
      wire.cut();
    }
  });
  await witness.expectUnharmed();
});

test("reads everything that was stored of all this", async () => {
  for (const route of callRoutes.filter(({ method, socket }) => method === "GET" && !socket)) {
    const headers = await callerOf(route);
    const { status, body } = await expectAnswered(route, (await ownPath(route, headers)).path + queryOf(smallestOf(route.query.schema, known)), headers);
    assert.ok([200, statusOf.payload_too_large].includes(status), `GET ${route.path} was answered ${status}: ${JSON.stringify(body).slice(0, 400)}`);
  }
  await witness.expectUnharmed();
});

test("deletes everything that was stored", async () => {
  for (const route of callRoutes.filter(({ method, path }) => method === "DELETE" && !path.includes(":id"))) {
    const { body } = await expectAnswered(route, route.path, { "x-api-key": attacker.api.apiKey });
    assert.equal((body as { errors?: unknown }).errors, undefined);
  }
});

test("control: the neighbour's command, which ran through all of this, ends as it should", () => witness.end());
