/** Prometheus metrics of the gateway and of the workers it hears from, on a loopback listener of their own. */
import { createServer, type Server } from "node:http";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { GatewayContext } from "./context.ts";
import type { Exchange } from "./http/exchange.ts";
import type { Route } from "./routes.ts";

interface Series {
  readonly requests: Counter.Internal;
  readonly duration: Histogram.Internal<"path">;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: "sandgate_http_requests_total",
    help: "Answered calls.",
    labelNames: ["method", "path", "status"],
    registers: [this.#registry],
  });
  readonly #duration = new Histogram({
    name: "sandgate_http_request_duration_seconds",
    help: "Time from the request to the end of its answer.",
    labelNames: ["path"],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers: [this.#registry],
  });

  readonly #series = new Map<string, Series>();

  /** @param inProgress how many calls are being answered now. */
  constructor(context: GatewayContext, inProgress: () => number) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry, prefix: "sandgate_gateway_" });
    gauge(registers, "sandgate_calls_in_progress", "Calls being answered now.", [], (set) => set({}, inProgress()));
    gauge(registers, "sandgate_streams_open", "Streams between this gateway and workers.", [], (set) => set({}, context.hub.open));
    const ofWorkers = (name: string, help: string, value: (worker: ReturnType<typeof context.workers.workers>[number]["worker"]) => number): void =>
      gauge(registers, name, help, ["worker"], (set) => {
        for (const { worker } of context.workers.workers()) set({ worker: worker.id }, value(worker));
      });
    ofWorkers("sandgate_worker_sandboxes", "Sandboxes on the worker.", (worker) => worker.sandboxes);
    ofWorkers("sandgate_worker_activities", "Commands and transfers running on the worker.", (worker) => worker.executions);
    ofWorkers("sandgate_worker_executions_total", "Commands started since the worker's start.", (worker) => worker.executions_total);
    ofWorkers("sandgate_worker_memory_free_bytes", "Free memory of the worker's host.", (worker) => worker.memory_free_bytes);
    ofWorkers("sandgate_worker_disk_free_bytes", "Free disk of the worker's host.", (worker) => worker.disk_free_bytes);
    ofWorkers("sandgate_worker_resident_bytes", "Memory of the worker process.", (worker) => worker.rss_bytes);
    gauge(registers, "sandgate_worker_limit_enforced", "Whether the worker's kernel enforces the limit.", ["worker", "limit"], (set) => {
      for (const { worker } of context.workers.workers()) {
        for (const check of worker.host) if (check.name.endsWith("_limit")) set({ worker: worker.id, limit: check.name }, check.ok ? 1 : 0);
      }
    });
  }

  observe(exchange: Exchange, route: Route | undefined): void {
    const path = route?.path ?? "other";
    const method = route ? exchange.method : "other";
    const series = this.#seriesOf(method, path, exchange.status ? String(exchange.status) : "aborted");
    series.requests.inc();
    series.duration.observe((performance.now() - exchange.startedAtMs) / 1_000);
  }

  /** prom-client takes long to find a series by its labels; there are few, and each is found once. */
  #seriesOf(method: string, path: string, status: string): Series {
    const key = `${method} ${path} ${status}`;
    let series = this.#series.get(key);
    if (!series) {
      series = { requests: this.#requests.labels({ method, path, status }), duration: this.#duration.labels({ path }) };
      this.#series.set(key, series);
    }
    return series;
  }

  /** Serves /metrics on loopback. */
  async listen(port: number): Promise<Server> {
    const server = createServer(async (request, response) => {
      if (request.url !== "/metrics") return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": this.#registry.contentType }).end(await this.#registry.metrics());
    });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
    return server;
  }
}

type SetValue = (labels: Record<string, string>, value: number) => void;

function gauge(registers: Registry[], name: string, help: string, labelNames: string[], read: (set: SetValue) => void): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers,
    collect() {
      this.reset();
      read((labels, value) => this.set(labels, value));
    },
  });
}
