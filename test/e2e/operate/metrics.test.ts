/** /metrics as Prometheus reads it: well-formed, true, and at the address that was set. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { Sandgate } from "../../../shared/client/index.ts";
import { AdminCommand } from "../../helpers/admin-command.ts";
import { Api } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { expectError } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { testPort } from "../../helpers/ports.ts";
import { TestProcess } from "../../helpers/process.ts";
import { type Metric, parseMetrics, problemsOf } from "../../helpers/prometheus.ts";
import { listenWithoutTaking } from "../../helpers/slow-consumer.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

/** Nothing is there by default. */
const host = "127.0.0.2";

const port = await testPort();
const settings = { SANDGATE_METRICS_HOST: "0.0.0.0", SANDGATE_METRICS_PORT: String(port), SANDGATE_POOL_SIZE: "1", SANDGATE_EXECUTIONS_PER_SANDBOX: "1" };
const stack = await fixture(startStack({ name: "metrics", settings }));
const client = new Sandgate({ baseUrl: stack.url, apiKey: stack.apiKey, maxRetries: 0 });

/** Under a name that every machine has, wherever it is. */
async function ask(path = "/metrics"): Promise<IncomingMessage> {
  const call = get({ host, port, path, headers: { host: `localhost:${port}` } });
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  return answer;
}

async function scrape(): Promise<Map<string, Metric>> {
  const answer = await ask();
  assert.equal(answer.statusCode, 200);
  assert.equal(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
  return parseMetrics(await text(answer));
}

/** A sample of a metric, named without `sandgate_`; its labels are those that are given, and perhaps more. */
async function value(name: string, labels: Record<string, string> = {}, metrics?: Map<string, Metric>): Promise<number | undefined> {
  const full = `sandgate_${name}`;
  const metric = (metrics ?? (await scrape())).get(full.replace(/_count$/, ""));
  return metric?.samples.find((sample) => sample.name === full && Object.entries(labels).every(([key, wanted]) => sample.labels[key] === wanted))?.value;
}

/** Workers tell with their heartbeats. */
async function reaches(name: string, wanted: number, labels: Record<string, string> = {}): Promise<void> {
  await until(`${name} is ${wanted}`, async () => (await value(name, labels)) === wanted);
}

test("what happens is counted, once", async () => {
  await reaches("worker_pool_containers", 1);
  const sandbox = await client.sandboxes.create({ image: "default" });
  await reaches("worker_pool_hits_total", 1);
  const other = await client.sandboxes.create({ image: "default", resources: { memory: 256 } });
  await reaches("worker_create_duration_seconds_count", 2);
  assert.equal(await value("worker_pool_misses_total"), 0, "the pool has no such containers");

  await sandbox.execute("true");
  const running = sandbox.executeAsync("mkfifo /tmp/end; echo started; read -r line < /tmp/end");
  const output = running[Symbol.asyncIterator]();
  await output.next();
  await assert.rejects(sandbox.execute("true"), { code: "rate_limited" });
  await other.execute("true");
  await output.return?.(undefined);
  await sandbox.snapshot();
  expectError(await new Api({ url: stack.url, apiKey: "sg_wrong" }).call("GET", "/v1/sandboxes/list"), "unauthorized");

  await reaches("worker_refusals_total", 1, { reason: "commands" });
  await reaches("worker_executions_total", 3);
  await reaches("worker_execute_start_duration_seconds_count", 3);
  await reaches("worker_execute_duration_seconds_count", 3);
  await reaches("worker_snapshots_taken_total", 1);
  await reaches("worker_snapshot_pause_seconds_count", 1);
  const metrics = await scrape();
  assert.equal(await value("http_errors_total", { code: "rate_limited" }, metrics), 1);
  assert.equal(await value("http_errors_total", { code: "unauthorized" }, metrics), 1);
  assert.equal(await value("http_errors_total", { code: "sandbox_limit_reached" }, metrics), 0, "what has not happened is known too");
  assert.equal(await value("http_requests_total", { method: "POST", path: "/v1/sandboxes/create", status: "201" }, metrics), 2);
  assert.equal(await value("http_request_duration_seconds_count", { path: "/v1/sandboxes/create" }, metrics), 2);
  assert.equal(await value("worker_sandboxes", {}, metrics), 2);
});

test("the NATS server tells of its connections, and of those that it closed because they did not keep up", async () => {
  const labels = { server: "nats" };
  const connections = (await value("nats_connections", labels)) ?? 0;
  await reaches("nats_slow_consumers_total", 0, labels);
  const subject = "test.flood";
  const slow = await listenWithoutTaking(stack.natsUrl, subject);
  await reaches("nats_connections", connections + 1, labels);
  await using bus = await connectBus(stack.natsUrl, "test-flood");
  // More than the server keeps for one connection.
  for (let piece = 0; piece < 100; piece++) {
    bus.publish(subject, new Uint8Array(1024 * 1024));
    await bus.connection.flush();
  }
  await reaches("nats_slow_consumers_total", 1, labels);
  slow.destroy();
  await bus.close();
  await reaches("nats_connections", connections, labels);
});

test("names, types and units are those that Prometheus expects", async () => {
  const metrics = await scrape();
  assert.deepEqual(problemsOf(metrics), []);
  const typeOf = (name: string): string | undefined => metrics.get(`sandgate_${name}`)?.type;
  assert.equal(typeOf("worker_executions_total"), "counter");
  assert.equal(typeOf("worker_sessions_total"), "counter");
  assert.equal(typeOf("worker_create_duration_seconds"), "histogram");
  assert.equal(typeOf("worker_snapshot_pause_max_seconds"), "gauge");
  const words = [...metrics].filter(([name]) => !/^sandgate_gateway_(process|nodejs)/.test(name)).map(([, { help }]) => help);
  for (const help of words) assert.match(help, /^[A-Z].*\.$/, "a sentence");
});

test("a worker that is started anew counts from zero under the same name", async () => {
  const worker = (await scrape()).get("sandgate_worker_executions_total")?.samples[0]?.labels.worker ?? "";
  await stack.worker.kill9();
  await stack.worker.start();
  await reaches("worker_executions_total", 0, { worker });
  assert.deepEqual(problemsOf(await scrape()), []);
});

test("what a worker's host lacks is seen by load balancers, by Prometheus and by operators", async () => {
  const { spec } = stack.worker;
  const id = spec.env.SANDGATE_WORKER_ID ?? "";
  const checks = async (): Promise<Record<string, number>> => {
    const samples = (await scrape()).get("sandgate_worker_host_check")?.samples ?? [];
    return Object.fromEntries(samples.filter(({ labels }) => labels.worker === id).map(({ labels, value }) => [labels.check, value]));
  };
  type Shown = { readonly id: string; readonly not_enforced: string[]; readonly lacks: string[] };
  const ready = async (): Promise<Shown[]> => ((await (await fetch(`${stack.url}/readyz`)).json()) as { workers: Shown[] }).workers;
  using admin = new AdminCommand(stack);
  const lacksShown = async (): Promise<string[] | undefined> => {
    const line = (await admin.run("workers")).stdout.split("\n").find((each) => each.startsWith(id));
    return line?.split(/ {2,}/).at(-1)?.split(", ");
  };
  const before = await checks();
  assert.equal(before.user_ids, 1);
  assert.deepEqual((await ready())[0]?.lacks.includes("user_ids"), false);
  const lacking = [...Object.keys(before).filter((name) => before[name] === 0), "exec_server", "user_ids"].sort();

  await stack.worker.stop();
  await using shared = new TestProcess({ ...spec, env: { ...spec.env, SANDGATE_USER_IDS: "shared", SANDGATE_EXEC_SERVER: "" } });
  await shared.start();
  await until("the worker has told it", async () => (await ready()).some(({ lacks }) => lacks.includes("user_ids")));
  const [worker] = await ready();
  assert.deepEqual(worker?.lacks.sort(), lacking);
  assert.deepEqual(
    worker?.not_enforced,
    lacking.filter((name) => name.endsWith("_limit")),
  );
  const after = await checks();
  assert.deepEqual(after, { ...before, user_ids: 0, exec_server: 0 });
  assert.deepEqual((await lacksShown())?.sort(), lacking);
  await shared.stop();
  await stack.worker.start();
});

test("it is served where it was set to be, with a warning in the log where others may reach that", async () => {
  assert.equal((await ask("/")).resume().statusCode, 404);
  assert.ok(stack.gateway.lines.some((line) => line.includes("metrics_exposed")));
});
