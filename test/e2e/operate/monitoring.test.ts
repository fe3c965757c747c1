/** The alert rules and the dashboard that come with the product, in a real Prometheus beside an installation in use. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { appDir } from "../../../shared/programs.mjs";
import { run } from "../../../systemd/base/run.ts";
import { searchPath } from "../../../systemd/base/search-path.mjs";
import { alertCases, alertSeries, alertTests } from "../../helpers/alert-cases.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { testPort } from "../../helpers/ports.ts";
import { TestProcess } from "../../helpers/process.ts";
import { startStack } from "../../helpers/stack.ts";
import { unpackedPackage } from "../../helpers/unpacked.ts";
import { until } from "../../helpers/until.ts";

/** A program of Debian's package. */
const programOf = async (name: string): Promise<string> => join(await unpackedPackage("prometheus"), "usr/bin", name);
const alertsFile = join(appDir, "systemd/prometheus/alerts.yml");
const dashboard = JSON.parse(readFileSync(join(appDir, "systemd/grafana/sandgate.json"), "utf8")) as {
  panels: { title: string; targets: { expr: string }[] }[];
};

class Prometheus implements AsyncDisposable {
  readonly #process: TestProcess;
  readonly #dir: string;
  readonly #url: string;

  private constructor(process: TestProcess, dir: string, url: string) {
    this.#process = process;
    this.#dir = dir;
    this.#url = url;
  }

  static async start(targetPort: number): Promise<Prometheus> {
    const program = await programOf("prometheus");
    const [port, dir] = [await testPort(), mkdtempSync(join(tmpdir(), "sandgate-prometheus-"))];
    const config = {
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: [alertsFile],
      scrape_configs: [{ job_name: "sandgate", static_configs: [{ targets: [`127.0.0.1:${targetPort}`] }] }],
    };
    // JSON is YAML.
    writeFileSync(join(dir, "prometheus.yml"), JSON.stringify(config));
    const process = new TestProcess({
      name: "prometheus",
      argv: [
        ...[program, `--config.file=${dir}/prometheus.yml`, `--storage.tsdb.path=${dir}/data`, `--web.listen-address=127.0.0.1:${port}`],
        "--enable-feature=exemplar-storage",
      ],
      env: { PATH: searchPath },
      cwd: "/",
      logFile: join(dir, "log"),
      isReady: (line) => line.includes("Server is ready to receive web requests"),
    });
    const prometheus = new Prometheus(process, dir, `http://127.0.0.1:${port}/api/v1`);
    await process.start();
    return prometheus;
  }

  async get<T>(path: string): Promise<T> {
    const { status, data, error } = (await (await fetch(`${this.#url}/${path}`)).json()) as { status: string; data: T; error?: string };
    assert.equal(status, "success", error);
    return data;
  }

  /** The number of series that an expression gives now. */
  async series(expression: string): Promise<number> {
    return (await this.get<{ result: unknown[] }>(`query?query=${encodeURIComponent(expression)}`)).result.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.kill9();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

const metricsPort = await testPort();
const settings = { SANDGATE_METRICS_PORT: String(metricsPort), SANDGATE_POOL_SIZE: "1", SANDGATE_EXECUTIONS_PER_SANDBOX: "1" };
const stack = await fixture(startStack({ name: "monitoring", settings }));
const prometheus = await fixture(Prometheus.start(metricsPort));
const api = new Api(stack);

test("every panel of the dashboard shows something of an installation in use", async () => {
  const id = await api.create();
  const queries = dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr: expr.replaceAll("$__rate_interval", "15s") })));
  assert.ok(queries.length > 20);
  let isOver = false;
  const use = async (): Promise<void> => {
    while (!isOver) {
      await Promise.all([api.execute(id, "sleep 0.2"), api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })]);
      await api.call("POST", `/v1/sandboxes/${id}/snapshot`, {});
      await api.delete(await api.create());
    }
  };
  const used = use();
  try {
    for (const { title, expr } of queries) await until(`${title}: ${expr}`, () => prometheus.series(expr));
  } finally {
    isOver = true;
    await used;
  }
});

test("exemplars lead from durations to the trace of a call", async () => {
  const traceId = randomBytes(16).toString("hex");
  const id = await api.create();
  const call = (): Promise<unknown> =>
    api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "sleep 0.6" }, { traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-01` });
  type Found = { exemplars: { labels: { trace_id: string } }[] }[];
  for (const name of ["http_request", "worker_execute", "worker_execute_start"]) {
    const query = new URLSearchParams({ query: `sandgate_${name}_duration_seconds_bucket`, start: "0", end: "9999999999" });
    await until(name, async () => {
      await call();
      const found = await prometheus.get<Found>(`query_exemplars?${query}`);
      return found.some(({ exemplars }) => exemplars.some(({ labels }) => labels.trace_id === traceId));
    });
  }
  await api.delete(id);
});

type Rule = { name: string; health: string; lastError?: string; state: string };
const rules = async (): Promise<Rule[]> => (await prometheus.get<{ groups: { rules: Rule[] }[] }>("rules")).groups.flatMap((group) => group.rules);
const stateOf = async (wanted: string): Promise<string | undefined> => (await rules()).find(({ name }) => name === wanted)?.state;

test("every alert rule fires by the series that mean it, and is silent by others", async (context) => {
  const named = [...readFileSync(alertsFile, "utf8").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  assert.deepEqual(
    alertCases.map(({ alert }) => alert),
    named,
  );
  const folder = mkdtempSync(join(tmpdir(), "sandgate-alerts-"));
  context.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "tests.yml"), alertTests(alertsFile));
  await run([await programOf("promtool"), "test", "rules", join(folder, "tests.yml")]);
});

test("those series are the ones that the product has", async () => {
  const labelsOf = (labels: Readonly<Record<string, string>>): string[] => Object.keys(labels).filter((label) => label !== "__name__");
  const present = async (name: string): Promise<string[]> =>
    (await prometheus.get<Record<string, string>[]>(`series?${new URLSearchParams({ "match[]": name })}`)).map((labels) => labelsOf(labels).sort().join());
  for (const { name, labels } of alertSeries()) assert.ok((await present(name)).includes(labels.join()), `${name} has ${labels.join()}`);
});

test("every alert rule can be evaluated, and a lost worker is one", async () => {
  const evaluated = await until("all are evaluated", async () => {
    const found = await rules();
    return found.every(({ health }) => health !== "unknown") && found;
  });
  assert.equal(evaluated.length, readFileSync(alertsFile, "utf8").match(/- alert:/g)?.length);
  for (const { name, health, lastError } of evaluated) assert.equal(health, "ok", `${name}: ${lastError}`);
  assert.equal(await stateOf("SandgateWorkerLost"), "inactive");
  await stack.worker.kill9();
  await until("the alert waits for its minute", async () => (await stateOf("SandgateWorkerLost")) === "pending");
  await stack.worker.start();
  await until("the alert is over", async () => (await stateOf("SandgateWorkerLost")) === "inactive");
});

test("entries that the audit record cannot take any more are an alert", async () => {
  assert.equal(await stateOf("SandgateAuditLost"), "inactive");
  await stack.nats.kill9();
  // More than a gateway holds in memory.
  for (let call = 0; call < 1_100; call += 50) {
    await Promise.all(Array.from({ length: 50 }, () => api.call("POST", "/v1/admin/accounts/acct_none", { suspended: true })));
  }
  await until("the alert", async () => (await stateOf("SandgateAuditLost")) === "firing");
  await stack.nats.start();
});
