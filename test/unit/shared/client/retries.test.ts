/** What the client does when a server refuses, is silent or goes away: what may be sent again is, nothing else. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import * as errors from "../../../../shared/client/errors.ts";
import { Sandgate } from "../../../../shared/client/index.ts";
import { BadServer, cut, cutAfter, failure, json, silence, stall } from "../../../helpers/bad-server.ts";
import { fixture } from "../../../helpers/fixture.ts";

const server = await fixture(BadServer.start());
const client = new Sandgate({ apiKey: "sg_test", baseUrl: server.url });

const sandbox = { id: "sb_1", name: "one", status: "running" };
const again = { "retry-after": "0" };
const passing = failure(503, "unavailable", again);
const box = () => client.sandbox("sb_1");

const classes: readonly [number, string, typeof errors.APIError][] = [
  [400, "invalid_request", errors.BadRequestError],
  [401, "unauthorized", errors.AuthenticationError],
  [403, "forbidden", errors.PermissionDeniedError],
  [404, "not_found", errors.NotFoundError],
  [405, "method_not_allowed", errors.APIError],
  [409, "conflict", errors.ConflictError],
  [413, "payload_too_large", errors.APIError],
  [422, "unprocessable", errors.UnprocessableEntityError],
  [429, "rate_limited", errors.RateLimitError],
  [500, "internal_error", errors.InternalServerError],
  [503, "unavailable", errors.InternalServerError],
  [507, "insufficient_storage", errors.InternalServerError],
];

const reasons: Readonly<Record<string, string>> = { forbidden: "suspended", not_found: "no_such_path", unprocessable: "is_directory" };

test("every status has its class, with status, code, headers and request id", async () => {
  for (const [status, code, expected] of classes) {
    server.plan(failure(status, code, { "retry-after": "7" }));
    const error = await box()
      .execute("true")
      .then(
        () => undefined,
        (thrown: errors.APIError) => thrown,
      );
    assert.ok(error instanceof expected && error instanceof errors.APIError && error instanceof errors.SandgateError, code);
    assert.equal(error.constructor, expected);
    assert.deepEqual(
      [error.name, error.status, error.code, error.reason, error.requestId, error.message, error.retryAfterMs],
      [expected.name, status, code, reasons[code], "req_test", `${code}!`, 7_000],
    );
    assert.equal(error.headers?.get("content-type"), "application/json");
  }
});

test("an answer that is not the API's is an error that says so", async () => {
  server.plan(
    (response) => response.end("<html>"),
    (response) => response.writeHead(418).end("<html>"),
  );
  await assert.rejects(client.account.get(), /not JSON: is this the address of a Sandgate gateway\?/);
  await assert.rejects(client.account.get(), { name: "APIError", status: 418, message: "the server answered with status 418" });
});

test("reading is repeated when the server asks for it, and when the connection breaks", async () => {
  server.plan(failure(429, "rate_limited", again), cut, json(200, sandbox));
  assert.equal((await client.sandboxes.get("sb_1")).name, "one");
  assert.equal(server.heard.length, 3);
  server.plan(cutAfter('{"id":', { "content-length": "100" }), json(200, sandbox));
  assert.equal((await client.sandboxes.get("sb_1")).name, "one");
});

test("it is repeated as often as was said, and not after what will not pass", async () => {
  server.plan(passing, passing, passing, passing);
  await assert.rejects(client.sandboxes.get("sb_1"), errors.InternalServerError);
  assert.equal(server.heard.length, 3);
  for (const maxRetries of [0, 1]) {
    server.plan(passing, passing, passing);
    await assert.rejects(client.sandboxes.get("sb_1", { maxRetries }), errors.InternalServerError);
    assert.equal(server.heard.length, maxRetries + 1);
  }
  for (const [status, code] of [
    [404, "not_found"],
    [409, "conflict"],
    [422, "unprocessable"],
    [507, "insufficient_storage"],
  ] as const) {
    server.plan(failure(status, code));
    await assert.rejects(client.sandboxes.get("sb_1"), { status });
    assert.equal(server.heard.length, 1);
  }
});

test("a server that asks for more patience than a minute is told on to the caller", async () => {
  server.plan(failure(429, "rate_limited", { "retry-after": "3600" }));
  await assert.rejects(client.sandboxes.get("sb_1"), (error: errors.RateLimitError) => error.retryAfterMs === 3_600_000);
  assert.equal(server.heard.length, 1);
});

test("what makes something carries one Idempotency-Key over all tries", async () => {
  const calls: readonly [string, () => Promise<unknown>, object][] = [
    ["/v1/sandboxes/create", () => client.sandboxes.create({ name: "n" }), { image: "default", name: "n" }],
    ["/v1/sandboxes/sb_1/snapshot", () => box().snapshot({ quick: true }), { quick: true }],
    ["/v1/sandboxes/sb_1/clone", () => box().clone({ name: "n" }), { name: "n" }],
    ["/v1/sandboxes/sb_1/fork", () => box().fork({ count: 2, memory: "require" }), { count: 2, memory: "require" }],
    ["/v1/snapshots/snap_1/restore", () => client.snapshots.restore("snap_1", { name: "n" }), { name: "n" }],
  ];
  const keys = new Set<unknown>();
  for (const [path, call, body] of calls) {
    server.plan(cut, passing, json(201, { ...sandbox, sandbox, snapshot: sandbox, data: [{ sandbox }] }));
    await call();
    assert.deepEqual(
      server.heard.map((heard) => [heard.method, heard.path, JSON.parse(heard.body)]),
      Array(3).fill(["POST", path, body]),
    );
    const used = new Set(server.heard.map(({ headers }) => headers["idempotency-key"]));
    assert.equal(used.size, 1);
    for (const key of used) keys.add(key);
  }
  assert.equal(keys.size, calls.length, "each call has a key of its own");
  server.plan(json(201, sandbox));
  await client.sandboxes.create({ idempotencyKey: "mine" });
  assert.equal(server.heard[0]?.headers["idempotency-key"], "mine");
});

test("commands and uploads are never sent twice", async () => {
  const once: readonly (() => Promise<unknown>)[] = [
    () => box().execute("true"),
    () => box().executeAsync("true").result,
    () => box().upload("/a", "text"),
    () => box().delete({ create_snapshot: true }),
  ];
  for (const call of once) {
    for (const step of [cut, passing, failure(429, "rate_limited", again)]) {
      server.plan(step, json(200, {}));
      await assert.rejects(call(), errors.APIError);
      assert.equal(server.heard.length, 1);
    }
  }
});

test("a deletion whose answer was lost is done when there is nothing left to delete", async () => {
  server.plan(cut, failure(404, "not_found"));
  assert.deepEqual(await box().delete(), { id: "sb_1", message: "Sandbox deleted", storage_deleted: true });
  server.plan(passing, failure(404, "not_found"));
  await client.snapshots.delete("snap_1");
  server.plan(failure(429, "rate_limited", again), failure(404, "not_found"));
  await assert.rejects(box().delete(), errors.NotFoundError, "a call that was refused has deleted nothing");
  server.plan(failure(404, "not_found"));
  await assert.rejects(box().delete(), errors.NotFoundError);
});

test("time that is over is told as such, and a command is not run again for it", async () => {
  server.plan(silence, silence);
  await assert.rejects(box().execute("true", { timeoutMs: 500 }), errors.APIConnectionTimeoutError);
  // On a busy machine the time may be over before the call has got there.
  assert.ok(server.heard.length <= 1);
  server.plan(silence, json(200, sandbox));
  // The second try has the same bound: it is generous, for machines that are busy.
  await client.sandboxes.get("sb_1", { timeoutMs: 2_000 });
  assert.equal(server.heard.length, 2);
});

test("a server that is not there is a connection error with its cause", async () => {
  const gone = new Sandgate({ apiKey: "k", baseUrl: "http://127.0.0.1:9", maxRetries: 0 });
  const error = await gone.account.get().catch((thrown: errors.APIConnectionError) => thrown);
  assert.ok(error instanceof errors.APIConnectionError && !(error instanceof errors.APIConnectionTimeoutError));
  assert.match(error.message, /^no answer from http:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/);
  assert.equal((error.cause as { code?: string }).code, "ECONNREFUSED");
  assert.equal(error.status, undefined);
});

test("an abort throws its reason, at once and between tries", async () => {
  const reason = new Error("enough");
  await assert.rejects(client.account.get({ signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  server.plan((response, request) => {
    failure(503, "unavailable", { "retry-after": "30" })(response, request);
    response.once("close", () => controller.abort(reason));
  });
  await assert.rejects(client.account.get({ signal: controller.signal }), reason);
});

test("a stream that breaks off, or ends without an exit code, is an error", async () => {
  const endings: readonly [string, Parameters<BadServer["plan"]>[0], RegExp][] = [
    ["cut", cutAfter('{"stdout":"a"}\n'), /the answer broke off/],
    ["no exit code", (response) => response.end('{"stdout":"a"}\n'), /without the command's exit code/],
    ["half a line", (response) => response.end('{"stdout":"a"}\n{"exit_c'), /inside a line/],
    ["no JSON", (response) => response.end('{"stdout":"a"}\nwhat\n'), /not JSON/],
  ];
  for (const [name, step, message] of endings) {
    server.plan(step);
    const execution = box().executeAsync("true");
    const chunks: unknown[] = [];
    await assert.rejects(
      async () => {
        for await (const chunk of execution) chunks.push(chunk);
      },
      (error: Error) => error instanceof errors.APIConnectionError && message.test(error.message),
      name,
    );
    assert.deepEqual(chunks, [{ stdout: "a" }]);
    await assert.rejects(execution.result, message);
  }
});

test("an error in the middle of a stream has the class of its code", async () => {
  server.plan((response) => {
    response.writeHead(200, { "x-request-id": "req_stream" });
    response.end('{"stdout":"a"}\n{"error":"the worker is gone","code":"unavailable"}\n');
  });
  await assert.rejects(box().executeAsync("true").result, {
    name: "InternalServerError",
    status: 503,
    code: "unavailable",
    requestId: "req_stream",
    message: "the worker is gone",
  });
});

test("leaving the loop, abort() and the signal close the connection", async () => {
  const controller = new AbortController();
  const ways: readonly ((execution: ReturnType<ReturnType<typeof box>["executeAsync"]>) => Promise<void>)[] = [
    async (execution) => {
      for await (const _chunk of execution) break;
    },
    async (execution) => {
      await assert.rejects(async () => {
        for await (const _chunk of execution) execution.abort(new Error("enough"));
      }, /enough/);
    },
    async (execution) => {
      await assert.rejects(async () => {
        for await (const _chunk of execution) controller.abort(new Error("enough"));
      }, /enough/);
    },
  ];
  for (const leave of ways) {
    const closed = Promise.withResolvers<void>();
    server.plan((response, request) => {
      response.once("close", closed.resolve);
      stall('{"stdout":"a"}\n')(response, request);
    });
    const execution = box().executeAsync("sleep 100", { signal: controller.signal });
    await leave(execution);
    await closed.promise;
    await assert.rejects(execution.result);
  }
});

test("a refusal that comes before the upload is whole is heard", async () => {
  const hasty = createServer((_request, response) => response.writeHead(413).end("{}"));
  await new Promise<void>((resolve) => hasty.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(hasty.address() as AddressInfo).port}`;
  let made = 0;
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) {
      made++;
      yield new Uint8Array(64 * 1024);
    }
  };
  const error = await new Sandgate({ apiKey: "k", baseUrl: url })
    .sandbox("sb_1")
    .upload("/a", endless())
    .catch((thrown: errors.APIError) => thrown);
  hasty.closeAllConnections();
  hasty.close();
  assert.ok(error instanceof errors.APIError && error.status === 413, String(error));
  assert.ok(made > 0);
});

test("a source that fails is told as such, and not as a server that is gone", async () => {
  server.plan(json(200, {}));
  const failing = async function* (): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new Error("bad disk");
  };
  const error = await box()
    .upload("/a", failing())
    .catch((thrown: Error) => thrown);
  assert.ok(error instanceof errors.SandgateError && !(error instanceof errors.APIError));
  assert.match(error.message, /could not be read: bad disk/);
  await assert.rejects(box().uploadFile("/none/such", "/a"), { code: "ENOENT" });
});

test("keys and addresses that none can be are refused before any call", () => {
  assert.throws(() => new Sandgate({ apiKey: "two\nlines", baseUrl: server.url }), errors.SandgateError);
  assert.throws(() => new Sandgate({ apiKey: "k", baseUrl: "localhost:8080" }), /is not the address of a gateway/);
  assert.throws(() => new Sandgate({ apiKey: "", baseUrl: server.url }), /there is no API key/);
});
