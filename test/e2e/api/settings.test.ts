/** What depends on settings: limits, CORS, and a worker that is gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { processes, untilNothingIsLeft, uploadForm, uploadRaw } from "../../helpers/files.ts";
import { fixture } from "../../helpers/fixture.ts";
import { testPort } from "../../helpers/ports.ts";
import { Connection } from "../../helpers/raw-http.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const uploadBytesMax = 2_000_000;
const origin = "https://app.example";

const metricsPort = await testPort();
const stack = await fixture(
  startStack({
    name: "settings",
    settings: {
      SANDGATE_UPLOAD_BYTES_MAX: String(uploadBytesMax),
      SANDGATE_BODY_BYTES_MAX: "2048",
      SANDGATE_EXECUTIONS_PER_SANDBOX: "2",
      SANDGATE_EXEC_TIMEOUT_MAX_MS: "5000",
      SANDGATE_STREAM_STALL_MS: "8000",
      SANDGATE_STREAM_WINDOW_BYTES: "65536",
      SANDGATE_ALLOWED_HOSTS: "gateway.internal, mapped.example:8443",
      SANDGATE_PUBLIC_URL: "http://public.example",
      SANDGATE_METRICS_PORT: String(metricsPort),
      SANDGATE_CORS_ORIGINS: `${origin}, https://other.example`,
    },
  }),
);
const api = new Api(stack);
const id = await api.create();

/** A body whose length is not told before. */
function chunked(bytes: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (let left = bytes; left > 0; left -= 10_000) controller.enqueue(new Uint8Array(Math.min(left, 10_000)));
      controller.close();
    },
  });
}

const untilThereIsRoom = () =>
  until("there is room for a command", async () => (await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status === 200);

test("a file may be as large as the limit and not a byte more, raw or as a form, its length told or not", async () => {
  assert.equal(expectOk(await uploadRaw(api, id, "/root/raw", new Uint8Array(uploadBytesMax))).size, uploadBytesMax);
  assert.equal(expectOk(await uploadRaw(api, id, "/root/chunked", chunked(uploadBytesMax))).size, uploadBytesMax);
  const form = (bytes: number): [string, string | Blob][] => [
    ["path", "/root/form"],
    ["file", new Blob([new Uint8Array(bytes)])],
  ];
  assert.equal(expectOk(await uploadForm(api, id, form(uploadBytesMax))).size, uploadBytesMax);
  const message = `a file must be at most ${uploadBytesMax} bytes`;
  for (const bytes of [uploadBytesMax + 1, 5_000_000]) {
    expectError(await uploadRaw(api, id, "/root/raw", new Uint8Array(bytes)), "payload_too_large", message);
    expectError(await uploadRaw(api, id, "/root/chunked", chunked(bytes)), "payload_too_large", message);
    expectError(await uploadForm(api, id, form(bytes)), "payload_too_large", message);
  }
  // The ends of refused uploads still count as running for a moment.
  await untilThereIsRoom();
  assert.equal((await api.execute(id, "stat -c %s /root/raw /root/chunked /root/form")).stdout, `${uploadBytesMax}\n`.repeat(3));
  await untilNothingIsLeft(api, id, "/root");
});

test("the limit of JSON bodies is a setting", async () => {
  const command = "#".repeat(3_000);
  expectError(await api.call("POST", `/v1/sandboxes/${id}/execute`, { command }), "payload_too_large", /2048 bytes/);
});

test("one command too many in a sandbox is refused until another has ended", async () => {
  const [first, second] = await Promise.all([api.stream(id, "echo; sleep 60"), api.stream(id, "echo; sleep 60")]);
  expectError(await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }), "rate_limited", /2 commands/);
  expectError(await api.call("POST", `/v1/sandboxes/${id}/execute_async`, { command: "true" }), "rate_limited");
  await Promise.all([first.body?.cancel(), second.body?.cancel()]);
  await untilThereIsRoom();
});

test("the longest streaming execution is a setting, and the message says it", async () => {
  expectError(
    await api.call("POST", `/v1/sandboxes/${id}/execute_async`, { command: "true", timeout: 6 }),
    "invalid_request",
    /^timeout must be between 1 and 5 /,
  );
});

test("an upload that the sandbox does not take ends in time and leaves nothing", async () => {
  await untilThereIsRoom();
  const wire = await Connection.open(api.url);
  try {
    wire.request("POST", `/v1/sandboxes/${id}/upload?path=/root/stuck`, { "x-api-key": api.apiKey, "transfer-encoding": "chunked" });
    await until("the upload has begun", async () => (await processes(api, id)).includes("cat"));
    await api.execute(id, 'for p in /proc/[0-9]*; do read -r name < $p/comm; [ "$name" = cat ] && kill -STOP "$(basename $p)"; done 2>/dev/null');
    // More than all buffers on the way hold, so that the gateway stops to read.
    for (let left = 190; left > 0; left--) wire.send(`2710\r\n${"x".repeat(10_000)}\r\n`);
    expectError(await wire.answer(), "unavailable", "the other end of the stream takes no more");
    await untilNothingIsLeft(api, id, "/root");
  } finally {
    wire.cut();
  }
});

test("origins of the allow-list may call from a browser, others may not", async () => {
  const call = (method: string, path: string, from: string) => api.call(method, path, undefined, { origin: from });
  for (const [method, path, status] of [
    ["GET", "/v1/sandboxes/list", 200],
    ["GET", "/v1/sandboxes/list?page=0", 400],
    ["GET", "/none", 404],
    ["OPTIONS", "/v1/sandboxes/create", 204],
    ["GET", `/v1/sandboxes/${id}/download?path=/etc/passwd`, 200],
  ] as const) {
    const allowed = await call(method, path, origin);
    assert.equal(allowed.status, status);
    assert.equal(allowed.headers.get("access-control-allow-origin"), origin);
    assert.match(allowed.headers.get("vary") ?? "", /origin/i);
    const refused = await call(method, path, "https://app.example.evil");
    assert.equal(refused.headers.get("access-control-allow-origin"), null);
    assert.match(refused.headers.get("vary") ?? "", /origin/i);
  }
  const preflight = await call("OPTIONS", "/v1/sandboxes/create", origin);
  assert.match(preflight.headers.get("access-control-allow-methods") ?? "", /POST/);
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /x-api-key/);
  assert.equal(preflight.headers.get("access-control-allow-credentials"), null);
});

// The last one: nothing runs after it.
test("without its worker every call on a sandbox is unavailable with Retry-After, what is in memory goes on", async () => {
  await stack.worker.kill9();
  await until("the worker is known to be gone", async () => (await fetch(`${stack.url}/readyz`)).status === 503);
  const ready = await fetch(`${stack.url}/readyz`);
  assert.deepEqual([((await ready.json()) as { status: string }).status, ready.headers.get("retry-after")], ["unavailable", "2"]);
  const path = `/v1/sandboxes/${id}`;
  for (const answer of [
    await api.call("POST", `${path}/execute`, { command: "true" }),
    await api.call("POST", `${path}/execute_async`, { command: "true" }),
    await api.call("POST", `${path}/upload?path=/x`),
    await api.call("GET", `${path}/download?path=/x`),
    await api.call("GET", `${path}/status`),
    await api.call("DELETE", `${path}/delete`),
    await api.call("POST", "/v1/sandboxes/create", { image: "default" }),
  ]) {
    expectError(answer, "unavailable");
  }
  expectOk(await api.call("GET", path));
  expectOk(await api.call("GET", "/v1/sandboxes/list"));
  expectOk(await api.call("GET", "/healthz"));
});

test("the settings name more hosts, and pages of the public address may log in", async () => {
  const call = async (host: string, origin?: string) => {
    const wire = await Connection.open(stack.url);
    try {
      const headers = { host, ...(origin ? { origin } : {}), "content-type": "application/json" };
      return await wire.request("POST", "/v1/auth/login", headers, '{"email":"ada@example.com","password":"x"}').answer();
    } finally {
      wire.cut();
    }
  };
  const foreign = /is not a name of this gateway/;
  for (const host of ["gateway.internal", "gateway.internal:99", "mapped.example:8443", "public.example", "localhost"])
    expectError(await call(host), "unauthorized");
  for (const host of ["mapped.example", "mapped.example:80", "app.example", "evil.example"]) expectError(await call(host), "invalid_request", foreign);
  for (const host of ["public.example", "gateway.internal:8080"]) expectError(await call(host, "http://public.example"), "unauthorized");
  expectError(await call("gateway.internal:8080", "http://gateway.internal:8080"), "unauthorized");
  for (const page of ["http://gateway.internal", "https://gateway.internal", "http://mapped.example:8443"]) {
    expectError(await call("gateway.internal:8080", page), "forbidden", /own pages/);
  }
});

test("the metrics are for those who call them by a name of this machine", async () => {
  const read = async (host: string): Promise<string> => {
    const wire = await Connection.open(`http://127.0.0.1:${metricsPort}`);
    wire.request("GET", "/metrics", { host, connection: "close" });
    await wire.closed();
    return wire.unread;
  };
  assert.match(await read(`localhost:${metricsPort}`), /^HTTP\/1\.1 200 [\s\S]+sandgate_http_requests_total/);
  assert.match(await read("evil.example"), /^HTTP\/1\.1 400 [\s\S]+is not a name of this gateway/);
});
