/** What holds for every request: bodies, content types, methods, paths, connections. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "../../../gateway/api/routes.ts";
import { newId } from "../../../shared/util/ids.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url } = sharedStack();
const json = { "content-type": "application/json" };
const notJson = "the request body is not valid JSON";

const accounts = await fixture(Accounts.open(sharedStack()));
const api = (await accounts.make()).api;
const id = await api.create();

async function connection(): Promise<Connection> {
  const made = await fixture(Connection.open(url));
  return made;
}

/** An answer to `create` or another POST with exactly these bytes as its body. */
async function post(body: string | Uint8Array, headers: Record<string, string> = json, path = "/v1/sandboxes/create") {
  return (await connection()).request("POST", path, { "x-api-key": api.apiKey, ...headers }, body).answer();
}

const execute = (body: string | Uint8Array, headers: Record<string, string> = json) => post(body, headers, `/v1/sandboxes/${id}/execute`);

for (const [what, body] of [
  ["text", "hello"],
  ["half an object", '{"image":"default"'],
  ["two objects", '{"image":"default"}{}'],
  ["a trailing comma", '{"image":"default",}'],
  ["white space only", " \n "],
  ["NUL bytes", "\0\0"],
  ["a form", "image=default"],
] as const) {
  test(`a body that is ${what} is not valid JSON`, async () => void expectError(await post(body), "invalid_request", notJson));
}

for (const body of ["[]", "null", "true", "1", '"text"', '[{"image":"default"}]']) {
  test(`a body that is ${body} is not an object`, async () => void expectError(await post(body), "invalid_request", "the request must be an object"));
}

test("a body that is not valid UTF-8 is refused instead of changed", async () => {
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
    const body = Buffer.concat([Buffer.from('{"image":"default","name":"'), Buffer.from(bytes), Buffer.from('"}')]);
    expectError(await post(body), "invalid_request", notJson);
  }
});

test("an empty body counts as {}", async () => {
  for (const headers of [json, {}, { "content-type": "text/plain" }]) {
    expectError(await post("", headers), "invalid_request", "Missing required field: image");
  }
  const without = (await connection()).request("POST", "/v1/sandboxes/create", { "x-api-key": api.apiKey });
  expectError(await without.answer(), "invalid_request", "Missing required field: image");
  expectError(await api.call("DELETE", `/v1/sandboxes/${newId("sandbox")}/delete`), "not_found");
});

test("the Content-Type of a body is application/json with any charset, or absent", async () => {
  const body = JSON.stringify({ command: "echo ok" });
  for (const type of ["application/json", "Application/JSON; charset=utf-8", 'application/json;charset="ISO-8859-1"', "application/json ; x=y"]) {
    assert.equal(expectOk(await execute(body, { "content-type": type })).stdout, "ok\n", type);
  }
  assert.equal(expectOk(await execute(body, {})).stdout, "ok\n");
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/jsonx",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "*/*",
  ]) {
    expectError(await execute(body, { "content-type": type }), "invalid_request", "the Content-Type must be application/json");
  }
});

test("a byte order mark and escapes do no harm, the last of a repeated field counts", async () => {
  assert.equal(expectOk(await execute('\ufeff{"command":"echo bom"}')).stdout, "bom\n");
  assert.equal(expectOk(await execute('{"comm\\u0061nd":"echo \\ud83d\\ude00"}')).stdout, "😀\n");
  assert.equal(expectOk(await execute('{"command":"echo 1","command":"echo 2"}')).stdout, "2\n");
});

test("fields that nobody knows are refused by name on every call, also inside of others", async () => {
  for (const [path, body, name] of [
    ["/v1/sandboxes/create", { image: "default", network: { access: "none", deny_out: ["0.0.0.0/0"] } }, "network.deny_out"],
    ["/v1/sandboxes/create", { image: "default", resources: { cpu: 2 } }, "resources.cpu"],
    [`/v1/sandboxes/${id}/execute`, { command: "id", user: "nobody" }, "user"],
    [`/v1/sandboxes/${id}/execute_async`, { command: "cat", stdin: "x" }, "stdin"],
    [`/v1/sandboxes/${id}/session-token`, { readonly: true }, "readonly"],
  ] as const) {
    expectError(await api.call("POST", path, body), "invalid_request", `Unknown field: ${name}`);
  }
  for (const route of routes) {
    if (route.access === "open" || route.method === "GET" || route.body === "file") continue;
    const { schema } = route.body as { schema: { additionalProperties?: unknown } };
    assert.equal(schema.additionalProperties, false, route.path);
  }
});

test("parameters that nobody knows, and those that come twice, are refused by name on every call", async () => {
  for (const route of routes) {
    if (route.access !== "account" || route.socket) continue;
    const path = route.path.replace(":id", id);
    expectError(await api.call(route.method, `${path}?verbose=1`), "invalid_request", "Unknown query parameter: verbose");
  }
  for (const [query, message] of [
    ["page=1&page=2", "the query parameter page must come only once"],
    ["page=1&%70age=2", "the query parameter page must come only once"],
    ["status=running", "Unknown query parameter: status"],
    ["__proto__=1", "Unknown query parameter: __proto__"],
    ["token=x", "Unknown query parameter: token"],
  ] as const) {
    expectError(await api.call("GET", `/v1/sandboxes/list?${query}`), "invalid_request", message);
  }
  expectOk(await new Api({ url, apiKey: "" }).call("GET", `/v1/sandboxes/list?api_key=${api.apiKey}&page=1`));
});

test("very many variables are refused at once, as many as may be are all there", async () => {
  const variables = (count: number, value: string) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, value]));
  const tooMany = /^the request must have at most 4096 fields$/;
  expectError(await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "env", env: variables(60_000, "") }), "invalid_request", tooMany);
  const full = await api.create({
    env_vars: Object.fromEntries(Object.entries(variables(1_000, "x".repeat(250))).map(([name, value]) => [`S${name}`, value])),
  });
  const { exit_code, stdout } = await api.execute(full, "env | grep -c '^S\\?V'", { env: variables(1_000, "y".repeat(250)) });
  assert.deepEqual([exit_code, stdout], [0, "2000\n"]);
  const snapshot = expectOk(await api.call<{ id: string }>("POST", `/v1/sandboxes/${full}/snapshot`), 201);
  const more = { env_vars: variables(1_000, "y".repeat(250)) };
  expectError(await api.call("POST", `/v1/snapshots/${snapshot.id}/restore`, more), "invalid_request", /^env_vars are too many/);
});

test("answers in JSON are lines, so that a prompt comes after them", async () => {
  for (const path of ["/v1/sandboxes/list", `/v1/sandboxes/${id}`, `/v1/sandboxes/${newId("sandbox")}`, "/healthz", "/openapi.json", "/none"]) {
    const answer = await api.raw("GET", path);
    const text = await answer.text();
    assert.match(text, /^\{.*\}\n$/, path);
    assert.equal(answer.headers.get("content-length"), String(Buffer.byteLength(text)), path);
  }
  for (const command of ["true", "head -c 2000000 /dev/zero | tr '\\0' x"]) {
    const answer = await api.raw("POST", `/v1/sandboxes/${id}/execute`, JSON.stringify({ command }), json);
    assert.match((await answer.text()).slice(-10), /\}\n$/);
  }
});

test("deeply nested JSON neither breaks nor blocks anything", async () => {
  const depth = 200_000;
  const nested = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  expectError(await execute(`{"telemetry":${nested},"command":"echo deep"}`), "invalid_request", /^the request must have at most 4096 fields$/);
  expectError(await execute(`{"telemetry":[[[[]]]],"command":"echo deep"}`), "invalid_request", "Unknown field: telemetry");
  expectError(await execute(`{"command":[[[]]]}`), "invalid_request", /^command must be a string/);
  expectError(await execute("[".repeat(depth)), "invalid_request", notJson);
});

test("a JSON body may have 1 MiB and not a byte more, with and without its length told", async () => {
  const limit = 1024 * 1024;
  const fill = (bytes: number) => {
    const body = '{"command":"echo full"}';
    return body.padEnd(bytes);
  };
  assert.equal(expectOk(await execute(fill(limit))).stdout, "full\n");
  const tooLarge = `the request body must be at most ${limit} bytes`;
  expectError(await execute(fill(limit + 1)), "payload_too_large", tooLarge);
  const chunked = (bytes: number) =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(fill(bytes)));
        controller.close();
      },
    });
  const send = async (bytes: number) => {
    const response = await api.raw("POST", `/v1/sandboxes/${id}/execute`, chunked(bytes), json);
    return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> };
  };
  assert.equal(expectOk(await send(limit)).stdout, "full\n");
  expectError(await send(limit + 1), "payload_too_large", tooLarge);
});

test("a body far over the limit still gets its answer through", async () => {
  const body = Buffer.alloc(24 * 1024 * 1024, "x");
  for (let round = 0; round < 5; round++) {
    const response = await api.raw("POST", "/v1/sandboxes/create", body, json);
    expectError({ status: response.status, headers: response.headers, body: await response.json() }, "payload_too_large");
  }
});

for (const [path, ofPath] of Map.groupBy(routes, (route) => route.path)) {
  const real = path.replace(":id", newId("sandbox"));
  const methods: string[] = ofPath.map(({ method }) => method);
  const allowed = [...methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"];
  const wrong = ["GET", "POST", "DELETE", "PUT", "PATCH"].filter((candidate) => !methods.includes(candidate));

  test(`${path} answers other methods than ${methods.join(" and ")} with 405 and Allow`, async () => {
    for (const other of wrong) {
      const answer = await api.call(other, real);
      expectError(answer, "method_not_allowed", new RegExp(`^${other} `));
      assert.deepEqual(answer.headers.get("allow")?.split(", "), allowed);
    }
  });

  test(`OPTIONS ${path} says what is allowed, without a key and without CORS headers`, async () => {
    const answer = await new Api({ url, apiKey: "" }).call("OPTIONS", real, undefined, {
      origin: "https://a.example",
      "access-control-request-method": methods[0] ?? "",
    });
    assert.equal(answer.status, 204);
    assert.deepEqual(answer.headers.get("allow")?.split(", "), allowed);
    assert.equal(answer.headers.get("content-length"), null, "a 204 has no Content-Length (RFC 9110, 8.6)");
    assert.deepEqual(
      [...answer.headers.keys()].filter((name) => name.startsWith("access-control")),
      [],
    );
  });
}

test("every method that is unknown altogether is not allowed either", async () => {
  for (const method of ["PROPFIND", "TRACE", "get", "X-Y"]) {
    const answer = await (await connection()).request(method, "/v1/sandboxes/list", { "x-api-key": api.apiKey }).answer();
    assert.ok(answer.status === 405 || answer.status === 400, `${method}: ${answer.status}`);
  }
});

test("HEAD answers with the headers of GET and no body", async () => {
  for (const [path, status] of [
    ["/v1/sandboxes/list", 200],
    [`/v1/sandboxes/${id}`, 200],
    [`/v1/sandboxes/${id}/download?path=/etc/passwd`, 200],
    [`/v1/sandboxes/${id}/download?path=/none`, 404],
    [`/v1/sandboxes/${newId("sandbox")}`, 404],
    ["/v1/sandboxes/list?page=0", 400],
    ["/v1/sandboxes/create", 405],
    ["/healthz", 200],
    ["/none", 404],
  ] as const) {
    const wire = await connection();
    const head = await wire.request("HEAD", path, { "x-api-key": api.apiKey }).answer({ hasBody: false });
    const get = await wire.request("GET", path, { "x-api-key": api.apiKey }).answer();
    assert.equal(head.status, status, path);
    if (status === 405) continue;
    assert.equal(get.status, status, path);
    const headers = ({ headers: all }: typeof get) => Object.fromEntries([...all].filter(([name]) => !["x-request-id", "date", "ratelimit"].includes(name)));
    assert.deepEqual(headers(head), headers(get), path);
    assert.equal(wire.unread, "", "HEAD brought a body");
  }
});

test("paths that are none are not found, with or without a key", async () => {
  for (const path of [
    "/v1",
    "/v1/sandboxes",
    "/v2/sandboxes/list",
    "//v1/sandboxes/list",
    "/v1//sandboxes/list",
    "/V1/sandboxes/list",
    "/v1/sandboxes/list/",
    "/v1/sandboxes/x/y/z",
    "/v1/sandboxes/%2e%2e/%2e%2e/etc/passwd",
    "/v1/../v1/sandboxes/list",
    "/../../etc/passwd",
    "/.env",
    "/*",
    `/${"a".repeat(3_000)}`,
  ]) {
    for (const headers of [{ "x-api-key": api.apiKey }, {}]) {
      expectError(await (await connection()).request("GET", path, headers as Record<string, string>).answer(), "not_found", "no such path");
    }
  }
});

test("ids may be percent-encoded, and what only looks like a path inside an id does not become one", async () => {
  const encoded = id.replace("sb_", "%73b%5F");
  assert.equal(expectOk(await api.call("GET", `/v1/sandboxes/${encoded}`)).id, id);
  for (const odd of [`${id}%2Fdelete`, `x%2F..%2F${id}`, `${id}%00`, `%20${id}`, id.toUpperCase(), `${id}%0d%0aset-cookie:x`]) {
    expectError(await api.call("GET", `/v1/sandboxes/${odd}`), "not_found", /^Sandbox not found/);
  }
});

test("the connection is kept over calls, also after errors whose body was read", async () => {
  const wire = await connection();
  const headers = { "x-api-key": api.apiKey, ...json };
  const call = (method: string, path: string, body?: string, more: Record<string, string> = headers) => wire.request(method, path, more, body).answer();
  expectOk(await call("GET", "/v1/sandboxes/list"));
  expectError(await call("POST", "/v1/sandboxes/create", "{"), "invalid_request");
  expectError(await call("POST", "/v1/sandboxes/create", "{}"), "invalid_request");
  expectError(await call("POST", "/v1/sandboxes/create", "x", { ...headers, "content-type": "text/plain" }), "invalid_request");
  expectError(await call("POST", `/v1/sandboxes/${newId("sandbox")}/execute`, '{"command":"true"}'), "not_found");
  assert.equal(expectOk(await call("POST", `/v1/sandboxes/${id}/execute`, '{"command":"echo kept"}')).stdout, "kept\n");
  expectError(await call("GET", "/none"), "not_found");
  expectError(await call("GET", "/v1/sandboxes/create"), "method_not_allowed");
  expectError(await call("GET", "/v1/sandboxes/list", undefined, {}), "unauthorized");
  expectOk(await call("GET", "/healthz"));
});

test("the connection is kept when the answer did not need the body that came with the request", async () => {
  const wire = await connection();
  const call = (method: string, path: string, key: string) => wire.request(method, path, { "x-api-key": key, ...json }, '{"image":"default"}').answer();
  expectError(await call("POST", "/v1/sandboxes/create", "sg_wrong"), "unauthorized");
  expectError(await call("POST", "/none", api.apiKey), "not_found");
  expectError(await call("PUT", "/v1/sandboxes/create", api.apiKey), "method_not_allowed");
  expectError(await call("POST", `/v1/sandboxes/${newId("sandbox")}/upload?path=/x`, api.apiKey), "not_found");
  expectOk(await wire.request("GET", "/healthz").answer());
});

test("requests sent without waiting are answered in their order", async () => {
  const wire = await connection();
  const headers = { "x-api-key": api.apiKey };
  wire.request("GET", `/v1/sandboxes/${id}`, headers);
  assert.equal(expectOk(await wire.answer()).id, id);
  wire.request("GET", "/healthz").request("GET", "/none").request("GET", "/healthz");
  assert.deepEqual([(await wire.answer()).status, (await wire.answer()).status, (await wire.answer()).status], [200, 404, 200]);
});

test("what is not HTTP is refused and the gateway goes on", async () => {
  for (const nonsense of [
    "\0\0\0\0\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    `GET / HTTP/1.1\r\nhost: a\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
  ]) {
    const wire = (await connection()).send(nonsense);
    await wire.closed();
    assert.match(wire.unread, /^(HTTP\/1\.1 [45]\d\d |$)/);
  }
  expectOk(await api.call("GET", "/healthz"));
});

test("a client that is gone before its body was complete leaves the gateway alone", async () => {
  const wire = await connection();
  wire.send(`POST /v1/sandboxes/create HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${api.apiKey}\r\ncontent-length: 100\r\n\r\n{"image":`).cut();
  await wire.closed();
  expectOk(await api.call("GET", "/v1/sandboxes/list"));
});

test("/healthz and /readyz need no key and say that calls can be carried out", async () => {
  const stranger = new Api({ url, apiKey: "" });
  assert.deepEqual(expectOk(await stranger.call("GET", "/healthz")), { status: "ok" });
  const ready = expectOk(await stranger.call<{ status: string; nats: boolean; workers: { draining: boolean }[] }>("GET", "/readyz"));
  assert.deepEqual([ready.status, ready.nats, ready.workers.length], ["ready", true, 1]);
  assert.equal(ready.workers[0]?.draining, false);
});
