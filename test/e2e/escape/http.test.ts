/**
 * Attacks with requests that two servers read differently, or that a page of another site sends. What is hidden behind a
 * request must not be carried out.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Accounts } from "../../helpers/accounts.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url } = sharedStack();
const { host } = new URL(url);

const accounts = await fixture(Accounts.open(sharedStack()));
const api = (await accounts.make()).api;
const id = await api.create();

/** A new connection on which these bytes are sent in one go. */
async function sent(...parts: string[]): Promise<Connection> {
  const wire = await fixture(Connection.open(url));
  return wire.send(Buffer.from(parts.join(""), "latin1"));
}

const path = (): string => `/v1/sandboxes/${id}/execute`;
const lines = (...headers: string[]): string => `${headers.join("\r\n")}\r\n\r\n`;
const post = (...headers: string[]): string => lines(`POST ${path()} HTTP/1.1`, `host: ${host}`, `x-api-key: ${api.apiKey}`, ...headers);
const body = '{"command":"true"}';
const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

/** A request that must not be carried out: it leaves a file. */
function hidden(): string {
  const command = JSON.stringify({ command: "touch /root/smuggled" });
  return post(`content-length: ${command.length}`) + command;
}

async function expectNothingHidden(): Promise<void> {
  assert.equal((await api.execute(id, "ls /root/smuggled")).exit_code, 2, "the hidden request was carried out");
}

/** One answer, which is a 400 with the error envelope, and the end of the connection. */
async function expectRefused(wire: Connection, message: RegExp): Promise<void> {
  expectError(await wire.answer(), "invalid_request", message);
  await wire.closed();
  assert.equal(wire.unread, "");
  await expectNothingHidden();
}

const ambiguous: readonly [attack: string, headers: readonly string[], rest: () => string, message: RegExp][] = [
  ["two Content-Lengths", ["content-length: 0", "content-length: 300"], hidden, /content-length must come only once/],
  ["two equal Content-Lengths", ["content-length: 18", "content-length: 18"], () => body + hidden(), /content-length must come only once/],
  ["a list of Content-Lengths", ["content-length: 18, 18"], () => body + hidden(), /^the Content-Length must be a whole number/],
  ["an empty Content-Length", ["content-length:"], hidden, /^the Content-Length must be/],
  ["a signed Content-Length", ["content-length: +18"], () => body + hidden(), /^the Content-Length must be/],
  ["a hexadecimal Content-Length", ["content-length: 0x12"], () => body + hidden(), /^the Content-Length must be/],
  ["an enormous Content-Length", ["content-length: 18446744073709551634"], () => body + hidden(), /^the Content-Length must be/],
  ["a Transfer-Encoding that is none", ["transfer-encoding: xchunked"], () => chunks + hidden(), /^the Transfer-Encoding must be chunked/],
  ["a Transfer-Encoding of several", ["transfer-encoding: gzip, chunked"], () => chunks + hidden(), /^the Transfer-Encoding must be chunked/],
  ["a Transfer-Encoding in capitals", ["transfer-encoding: Chunked"], () => chunks + hidden(), /^the Transfer-Encoding must be chunked/],
  ["an empty Transfer-Encoding", ["transfer-encoding:"], () => chunks + hidden(), /^the Transfer-Encoding must be chunked/],
  ["two Transfer-Encodings", ["transfer-encoding: chunked", "transfer-encoding: identity"], () => chunks + hidden(), /transfer-encoding must come only once/],
  ["an empty Transfer-Encoding with a Content-Length", ["transfer-encoding:", "content-length: 0"], hidden, /must not come together/],
  ["two Hosts", [`host: ${new URL(url).host}`], hidden, /host must come only once/],
  ["two keys", ["x-api-key: sg_other"], hidden, /x-api-key must come only once/],
  ["two Content-Types", ["content-type: text/plain", "content-type: application/json"], hidden, /content-type must come only once/],
];
for (const [attack, headers, rest, message] of ambiguous) {
  test(`hides a request behind ${attack}`, async () => expectRefused(await sent(post(...headers), rest()), message));
}

for (const method of ["GET", "HEAD"]) {
  test(`hides a request in the body of a ${method}`, async () => {
    const head = (...more: string[]) => lines(`${method} /healthz HTTP/1.1`, `host: ${host}`, ...more);
    const request = hidden();
    await expectRefused(await sent(head(`content-length: ${request.length}`), request), /takes no body$/);
    await expectRefused(await sent(head("transfer-encoding: chunked"), chunks, request), /takes no body$/);
  });
}

for (const method of ["G@T", "GE(T", "", "GET\x7f"]) {
  test(`calls a method that is none: ${JSON.stringify(method)}`, async () => {
    await expectRefused(await sent(lines(`${method} /healthz HTTP/1.1`, `host: ${host}`)), /^the method is not valid$/);
  });
}

const leniently: readonly [attack: string, chunked: () => string][] = [
  ["chunks that end with LF alone", () => `${body.length.toString(16)}\n${body}\r\n0\n\r\n`],
  ["chunk data without CRLF", () => `${body.length.toString(16)}\r\n${body}XX0\r\n\r\n`],
  ["a chunk size with an extension", () => `${body.length.toString(16)};x="\n"\r\n${body}\r\n0\r\n\r\n`],
  ["chunks that are in order", () => chunks],
];
test("an honest chunked body is answered, and the connection ends with that", async () => {
  const wire = await sent(post("transfer-encoding: chunked"), chunks);
  const answer = await wire.answer<{ status: string }>();
  assert.equal(expectOk(answer).status, "completed");
  assert.equal(answer.headers.get("connection"), "close");
  await wire.closed();
});

test("a chunked body that nobody wants is taken, so that its answer gets through", async () => {
  const wire = await sent(post("transfer-encoding: chunked").replace(api.apiKey, "sg_wrong"));
  for (let sentBytes = 0; sentBytes < 4 * 1024 * 1024; sentBytes += 65_536) wire.send(`10000\r\n${"x".repeat(65_536)}\r\n`);
  expectError(await wire.send("0\r\n\r\n").answer(), "unauthorized");
  await wire.closed();
});

const chunkFaults: readonly [attack: string, chunked: string][] = [
  ["a negative chunk size", `-1\r\n${body}\r\n0\r\n\r\n`],
  ["a chunk size with 0x", `0x12\r\n${body}\r\n0\r\n\r\n`],
  ["a chunk size that overflows", `ffffffffffffffff1\r\n${body}\r\n0\r\n\r\n`],
  ["a trailer", `12\r\n${body}\r\n0\r\nx-api-key: sg_other\r\n\r\n`],
];
/** What uWebSockets.js itself cannot read: nothing of it is carried out, with whatever answer it gives before it closes. */
const unreadable: readonly [attack: string, bytes: () => string][] = [
  ...chunkFaults.map(([attack, chunked]): [string, () => string] => [attack, () => post("transfer-encoding: chunked") + chunked]),
  ["Content-Length with Transfer-Encoding", () => post("content-length: 5", "transfer-encoding: chunked") + chunks],
  ["no Host", () => lines(`GET /healthz HTTP/1.1`, "x: y")],
  ["a line that is folded", () => post("content-length: 0", "x: a", " b")],
  ["a space before the colon", () => post("content-length : 300", "content-length: 0")],
  ["NUL in a header", () => post("content-length: 0", "x: a\0b")],
  ["NUL in the name of a header", () => post("content-length: 0", "x\0y: a")],
  ["a bare CR in a header", () => post("content-length: 0", "x: a\rcontent-length: 300")],
  ["a bare LF in a header", () => post("content-length: 0\ncontent-length: 300")],
  ["lines that end with LF alone", () => `GET /healthz HTTP/1.1\nhost: ${host}\n\n`],
  ["a version that is not HTTP/1.1", () => lines("GET /healthz HTTP/3.7", `host: ${host}`)],
  ["an old version", () => lines("GET /healthz HTTP/1.0", `host: ${host}`)],
  ["a version that is none", () => lines("GET /healthz HTTPS", `host: ${host}`)],
  ["a method beyond ASCII", () => lines("GÄT /healthz HTTP/1.1", `host: ${host}`)],
  ["too many headers", () => post("content-length: 0", ...Array.from({ length: 200 }, (_, index) => `x-${index}: y`))],
  ["too long a header", () => post("content-length: 0", `x: ${"y".repeat(100_000)}`)],
  ["too long a path", () => lines(`GET /${"y".repeat(100_000)} HTTP/1.1`, `host: ${host}`)],
];
// At once, because uWebSockets.js takes seconds to give some of them up.
describe("what cannot be read, or only leniently", { concurrency: true }, () => {
  for (const [attack, chunked] of leniently) {
    test(`hides a request behind ${attack}`, async () => {
      const wire = await sent(post("transfer-encoding: chunked"), chunked(), hidden());
      await wire.closed();
      assert.equal((wire.unread.match(/HTTP\/1\.1 /g) ?? []).length <= 1, true, wire.unread);
      await expectNothingHidden();
    });

    test(`puts the beginning of somebody else's request behind ${attack}`, async () => {
      const append = async (call: string): Promise<void> => {
        const request = hidden();
        const wire = await sent(post("transfer-encoding: chunked").replace("/execute ", `/${call} `), chunked(), request.slice(0, 40));
        await wire.answer({ hasBody: false }).catch(() => {});
        wire.send(request.slice(40));
        await wire.closed();
        assert.equal(wire.unread.includes("HTTP/1.1 "), false, wire.unread);
        await expectNothingHidden();
      };
      await Promise.all(["execute", "execute_async"].map(append));
    });
  }

  for (const [attack, bytes] of unreadable) {
    test(`hides a request behind ${attack}`, async () => {
      const wire = await sent(bytes(), hidden());
      await wire.closed();
      assert.match(wire.unread, /^(?:HTTP\/1\.1 (?:4\d\d|505) |$)/);
      assert.equal((wire.unread.match(/HTTP\/1\.1 [1-9]/g) ?? []).length <= 1, true, wire.unread);
      await expectNothingHidden();
    });
  }
});

const get = (where: string, headers: Record<string, string>): string =>
  lines(`GET ${where} HTTP/1.1`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`));

for (const evil of [
  "evil.example",
  "evil.example:8080",
  "localhost.evil.example",
  "192.0.2.7",
  "127.0.0.1.evil.example",
  "localhost@evil.example",
  "sub.localhost",
]) {
  test(`calls as a page whose name was bound anew, with the Host ${evil}`, async () => {
    for (const where of ["/", "/healthz", "/readyz", "/v1/auth/settings", "/v1/account", "/openapi.json", "/none"]) {
      const wire = await sent(get(where, { host: evil, "x-api-key": api.apiKey, origin: `http://${evil}` }));
      const message = expectError(await wire.answer(), "invalid_request", /is not a name of this gateway; set SANDGATE_ALLOWED_HOSTS$/);
      assert.ok(message.includes(evil));
      await wire.closed();
    }
  });

  test(`logs in as a page whose name was bound anew, with the Host ${evil}`, async () => {
    const text = JSON.stringify({ email: "ada@example.com", password: "guessed password" });
    const headers = [`host: ${evil}`, `origin: http://${evil}`, "content-type: application/json", `content-length: ${text.length}`];
    const wire = await sent(lines("POST /v1/auth/login HTTP/1.1", ...headers), text);
    expectError(await wire.answer(), "invalid_request", /is not a name of this gateway/);
    await wire.closed();
  });

  test(`opens a WebSocket as a page whose name was bound anew, with the Host ${evil}`, async () => {
    const upgrade = { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    const headers = { host: evil, origin: `http://${evil}`, "x-api-key": api.apiKey, ...upgrade, "sec-websocket-protocol": "sandgate.exec.v1" };
    const wire = await sent(get(`/v1/sandboxes/${id}/session`, headers));
    expectError(await wire.answer(), "invalid_request", /is not a name of this gateway/);
    await wire.closed();
  });
}

test("logs in as a page from another port of the same machine", async () => {
  const text = JSON.stringify({ email: "ada@example.com", password: "guessed password" });
  for (const origin of ["http://localhost:1", "http://127.0.0.1:1", "http://localhost", "null", "http://evil.example:8080"]) {
    const headers = [`host: ${host}`, `origin: ${origin}`, "content-type: application/json", `content-length: ${text.length}`];
    const wire = await sent(lines("POST /v1/auth/login HTTP/1.1", ...headers), text);
    expectError(await wire.answer(), "forbidden", /own pages/);
  }
});

test("the gateway is called by its loopback names, with whatever port a mapping gives it", async () => {
  for (const name of ["localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1", "[::1]:80"]) {
    assert.equal((await (await sent(get("/healthz", { host: name }))).answer()).status, 200, name);
  }
});
