/** A call's trace, from the client over gateway and worker to a receiver of OpenTelemetry and to the log lines. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Api, collect } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { OtlpReceiver, type ReceivedSpan } from "../../helpers/otlp.ts";
import type { TestProcess } from "../../helpers/process.ts";
import { connect } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const secret = `word${randomBytes(12).toString("hex")}`;
const headerKey = randomBytes(12).toString("hex");
const receiver = await fixture(OtlpReceiver.start());
const stack = await fixture(
  startStack({
    name: "traces",
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${headerKey}`,
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    },
  }),
);
const api = new Api(stack);
const id = await api.create({ env_vars: { OWN: secret } });

const newTrace = () => ({ traceId: randomBytes(16).toString("hex"), spanId: randomBytes(8).toString("hex") });
type Trace = ReturnType<typeof newTrace>;
const header = ({ traceId, spanId }: Trace): Record<string, string> => ({ traceparent: `00-${traceId}-${spanId}-01`, tracestate: "shop=t61rcWkgMzE" });

const received = (traceId: string): ReceivedSpan[] => receiver.spans.filter((span) => span.traceId === traceId);
const has = (traceId: string, name: string): boolean => received(traceId).some((span) => span.name === name);

/** Whether the spans are one tree: only the root's parent is not among them. */
function isTree(spans: readonly ReceivedSpan[]): boolean {
  const known = new Set(spans.map(({ spanId }) => spanId));
  return spans.filter(({ parentId }) => !known.has(parentId)).length === 1;
}

/** The spans of a trace, once all of these are there, with those that they are part of. */
async function spansOf(traceId: string, ...names: string[]): Promise<ReceivedSpan[]> {
  return until(`the spans ${names.join(", ")}`, () => names.every((name) => has(traceId, name)) && isTree(received(traceId)) && received(traceId));
}

/** Resolves when every span that had ended before has been received. */
async function allReceived(): Promise<void> {
  const later = newTrace();
  await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }, header(later));
  await spansOf(later.traceId, `POST ${executePath}`, "command.run");
}

const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => spans.find((span) => span.name === name) ?? assert.fail(`there is no ${name}`);

/** The names from a span up to the one that came from outside. */
function pathOf(spans: readonly ReceivedSpan[], name: string, from: Trace): string[] {
  const path: string[] = [];
  for (let at: ReceivedSpan | undefined = named(spans, name); at; ) {
    path.unshift(`${at.kind} ${at.name}`);
    if (at.parentId === from.spanId) return path;
    at = spans.find(({ spanId }) => spanId === at?.parentId);
  }
  return assert.fail(`${path.join(" < ")} does not begin with the call`);
}

const linesOf = (part: TestProcess, traceId: string): Record<string, unknown>[] =>
  part.lines.filter((line) => line.includes(traceId)).map((line) => JSON.parse(line) as Record<string, unknown>);

const executePath = "/v1/sandboxes/{id}/execute";

test("one call is one tree of spans in gateway and worker, and its log lines have the same trace id", async () => {
  const trace = newTrace();
  const answer = await api.call(
    "POST",
    `/v1/sandboxes/${id}/execute`,
    { command: `echo ${secret}`, env: { MORE: secret }, working_dir: "/tmp" },
    header(trace),
  );
  assert.equal(answer.status, 200);
  const spans = await spansOf(trace.traceId, `POST ${executePath}`, "command.run");
  const root = `server POST ${executePath}`;
  assert.deepEqual(pathOf(spans, "command.start", trace), [root, "client worker/execute", "server worker/execute", "internal command.start"]);
  assert.deepEqual(pathOf(spans, "command.run", trace), [root, "client worker/execute", "server worker/execute", "internal command.run"]);
  const call = named(spans, `POST ${executePath}`);
  const requestId = answer.headers.get("x-request-id");
  assert.deepEqual(call.attributes, {
    "http.request.method": "POST",
    "http.route": executePath,
    "http.response.status_code": 200,
    "sandgate.request.id": requestId,
    "sandgate.sandbox.id": id,
  });
  assert.deepEqual([call.state, call.isError], ["shop=t61rcWkgMzE", false]);
  assert.equal(named(spans, "command.run").attributes["process.exit.code"], 0);
  for (const { startNs, endNs, resource } of spans) {
    assert.ok(startNs > 0n && endNs >= startNs);
    assert.equal(resource["deployment.environment.name"], "test");
  }
  const services = spans.map(({ name, kind, resource }) => [`${kind} ${name}`, resource["service.name"]]);
  assert.deepEqual(Object.fromEntries(services)[root], "sandgate-gateway");
  assert.deepEqual(Object.fromEntries(services)["server worker/execute"], "sandgate-worker");

  for (const part of [stack.gateway, stack.worker]) {
    const lines = linesOf(part, trace.traceId);
    assert.ok(lines.length > 0, part.spec.name);
    for (const line of lines) assert.deepEqual([line.trace_id, line.request_id], [trace.traceId, requestId]);
  }
});

test("a call whose traceparent is invalid, or that has none, begins a trace of its own", async () => {
  const bad = newTrace();
  const headers: Record<string, string>[] = [{}, { traceparent: `00-${bad.traceId}-${bad.spanId}-01-more` }, { traceparent: "nonsense", tracestate: "a=1" }];
  const seen: unknown[] = [];
  for (const given of headers) {
    const { status, headers: answered } = await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }, given);
    assert.equal(status, 200);
    const requestId = answered.get("x-request-id");
    const line = await until("the gateway's line", () => stack.gateway.lines.find((text) => text.includes(`${requestId}`)));
    const { trace_id } = JSON.parse(line) as { trace_id: string };
    assert.match(trace_id, /^[0-9a-f]{32}$/);
    const spans = await spansOf(trace_id, `POST ${executePath}`, "command.run");
    assert.equal(named(spans, `POST ${executePath}`).parentId, "");
    seen.push(trace_id);
  }
  assert.equal(new Set([...seen, bad.traceId]).size, headers.length + 1);
  assert.deepEqual(received(bad.traceId), []);
});

test("a caller that does not record a call keeps it from being recorded", async () => {
  const [not, recorded] = [newTrace(), newTrace()];
  await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }, { traceparent: `00-${not.traceId}-${not.spanId}-00` });
  await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }, header(recorded));
  await spansOf(recorded.traceId, `POST ${executePath}`, "command.run");
  assert.deepEqual(received(not.traceId), []);
  assert.ok(linesOf(stack.worker, not.traceId).length > 0);
});

test("the span of a stream ends with the stream", async () => {
  const trace = newTrace();
  const command = "mkfifo /tmp/end; echo one; read -r line < /tmp/end";
  const path = `/v1/sandboxes/${id}/execute_async`;
  const answer = await api.raw("POST", path, JSON.stringify({ command }), { "content-type": "application/json", ...header(trace) });
  await until("the command has begun", () => has(trace.traceId, "worker/execute"));
  await allReceived();
  const names = ["POST /v1/sandboxes/{id}/execute_async", "command.run"];
  for (const name of names) assert.equal(has(trace.traceId, name), false, name);
  await api.execute(id, "until [ -p /tmp/end ]; do sleep 0.1; done; echo > /tmp/end");
  assert.equal((await collect(answer)).last?.exit_code, 0);
  const spans = await spansOf(trace.traceId, ...names);
  assert.equal(named(spans, "command.run").attributes["sandgate.execution.status"], "completed");
});

test("the span of a live session ends with its WebSocket", async () => {
  const trace = newTrace();
  const client = await connect(api, id, { headers: { "x-api-key": api.apiKey, ...header(trace) } });
  client.send({ type: "start", command: "read line", tty: false });
  await client.ready();
  await until("it was upgraded", () => has(trace.traceId, "GET /v1/sandboxes/{id}/session"));
  assert.equal(named(received(trace.traceId), "GET /v1/sandboxes/{id}/session").attributes["http.response.status_code"], 101);
  await allReceived();
  for (const name of ["session", "command.run"]) assert.equal(has(trace.traceId, name), false, name);
  client.send({ type: "stdin_close" });
  await until("the session's end", () => client.close);
  const spans = await spansOf(trace.traceId, "session", "command.run");
  const root = "server GET /v1/sandboxes/{id}/session";
  const start = [root, "internal session", "client worker/sessionStart", "server worker/sessionStart"];
  assert.deepEqual(pathOf(spans, "command.start", trace), [...start, "internal command.start"]);
  assert.deepEqual(pathOf(spans, "command.run", trace), [...start, "internal command.run"]);
  for (const part of [stack.gateway, stack.worker]) assert.ok(linesOf(part, trace.traceId).length > 0, part.spec.name);
});

test("the steps of making and copying a sandbox are spans", async () => {
  const [created, taken] = [newTrace(), newTrace()];
  const { body } = await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }, header(created));
  const making = await spansOf(created.traceId, "POST /v1/sandboxes/create", "slot.wait", "sandbox.files", "container.start", "container.isolate");
  const path = ["server POST /v1/sandboxes/create", "client worker/create", "server worker/create"];
  for (const name of ["sandbox.files", "container.start"]) assert.deepEqual(pathOf(making, name, created), [...path, `internal ${name}`]);
  await api.call("POST", `/v1/sandboxes/${body.id}/snapshot`, {}, header(taken));
  await spansOf(taken.traceId, "POST /v1/sandboxes/{id}/snapshot", "snapshot.capture", "snapshot.publish");
  await api.delete(body.id);
});

test("a failed call says so by its code, and only the service's own failures are errors", async () => {
  const [absent, unknown] = [newTrace(), newTrace()];
  const { body } = await api.call<{ error: { request_id: string } }>("POST", "/v1/sandboxes/sb_0/execute", { command: "true" }, header(absent));
  const [span] = await spansOf(absent.traceId, `POST ${executePath}`);
  assert.deepEqual([span?.attributes["error.type"], span?.attributes["http.response.status_code"], span?.isError], ["not_found", 404, false]);
  assert.equal(span?.attributes["sandgate.request.id"], body.error.request_id);
  await api.call("GET", `/${secret}`, undefined, header(unknown));
  assert.deepEqual(
    (await spansOf(unknown.traceId, "GET")).map(({ attributes }) => attributes["http.route"]),
    [undefined],
  );
});

test("a file's transfer is a span to its end, which does not tell of the file", async () => {
  const trace = newTrace();
  const path = `/v1/sandboxes/${id}/upload?path=/tmp/${secret}`;
  const { status } = await api.raw("POST", path, secret, { "content-type": "application/octet-stream", ...header(trace) });
  assert.equal(status, 200);
  const spans = await spansOf(trace.traceId, "POST /v1/sandboxes/{id}/upload", "transfer");
  assert.deepEqual(pathOf(spans, "transfer", trace).slice(1), ["client worker/upload", "server worker/upload", "internal transfer"]);
});

test("without a receiver calls go on, that is said once, and spans come again with it", async () => {
  await receiver.close();
  const lost = (part: TestProcess): number => part.linesSinceStart.filter((line) => line.includes('"event":"traces_lost"')).length;
  const parts = [stack.gateway, stack.worker];
  await until("it is said", async () => {
    await api.execute(id, "true");
    return parts.every((part) => lost(part) > 0);
  });
  for (const part of parts) assert.equal(lost(part), 1, part.spec.name);
  await receiver.open();
  await until("spans come again", async () => {
    await api.execute(id, "true");
    return parts.every((part) => part.lines.some((line) => line.includes('"event":"traces_sent"')));
  });
  for (const part of parts) assert.equal(lost(part), 1, part.spec.name);
});

test("what has ended is sent before a part stops", async () => {
  const trace = newTrace();
  await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" }, header(trace));
  await Promise.all([stack.gateway.stop(), stack.worker.stop()]);
  const spans = received(trace.traceId);
  for (const name of [`POST ${executePath}`, "worker/execute", "command.run"]) named(spans, name);
});

test("no span has a command, an environment, a path, or a key, and no log line has the receiver's key", () => {
  assert.ok(receiver.spans.length > 50);
  for (const body of receiver.bodies) for (const word of [secret, stack.apiKey, headerKey, "/tmp"]) assert.equal(body.includes(word), false, word);
  assert.ok(receiver.headers.every(({ authorization }) => authorization === `Bearer ${headerKey}`));
  for (const part of [stack.gateway, stack.worker]) assert.equal(readFileSync(part.spec.logFile, "utf8").includes(headerKey), false, part.spec.name);
});
