/** Prometheus metrics of the gateway and of the workers it hears from, on a loopback listener of their own. */
import { createServer, type Server } from "node:http";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { GatewayContext } from "./context.ts";
import type { Exchange } from "./http/exchange.ts";
import type { Route } from "./routes.ts";

/** Upper bounds in seconds. */
const bounds = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60] as const;

/** The calls of one method, path and status. Plain numbers: prom-client's own counting costs more than a cheap call. */
interface Series {
  readonly labels: string;
  readonly path: string;
  count: number;
  seconds: number;
  /** Calls by the first bound that they keep; those beyond the last one are only in `count`. */
  readonly within: number[];
}

export class Metrics {
  readonly #registry = new Registry();
  /** By route and status: few, and found without making a text. HEAD counts as GET. */
  readonly #series = new Map<Route | undefined, Map<number, Series>>();

  /** @param inProgress how many calls are being answered now. */
  constructor(context: GatewayContext, inProgress: () => number) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry, prefix: "sandgate_gateway_" });
    gauge(registers, "sandgate_calls_in_progress", "Calls being answered now.", [], (set) => set({}, inProgress()));
    gauge(registers, "sandgate_streams_open", "Streams between this gateway and workers.", [], (set) => set({}, context.hub.open));
    gauge(registers, "sandgate_session_sockets_open", "WebSockets of live sessions on this gateway.", [], (set) => set({}, context.sockets.size));
    const ofWorkers = (name: string, help: string, value: (worker: ReturnType<typeof context.workers.workers>[number]["worker"]) => number): void =>
      gauge(registers, name, help, ["worker"], (set) => {
        for (const { worker } of context.workers.workers()) set({ worker: worker.id }, value(worker));
      });
    ofWorkers("sandgate_worker_sandboxes", "Sandboxes on the worker.", (worker) => worker.sandboxes);
    ofWorkers("sandgate_worker_activities", "Commands and transfers running on the worker.", (worker) => worker.executions);
    ofWorkers("sandgate_worker_executions_total", "Commands started since the worker's start.", (worker) => worker.executions_total);
    ofWorkers("sandgate_worker_sessions", "Live sessions whose command runs on the worker.", (worker) => worker.sessions ?? 0);
    ofWorkers("sandgate_worker_sessions_total", "Live sessions started since the worker's start.", (worker) => worker.sessions_total ?? 0);
    ofWorkers("sandgate_worker_memory_free_bytes", "Free memory of the worker's host.", (worker) => worker.memory_free_bytes);
    ofWorkers("sandgate_worker_disk_free_bytes", "Free disk of the worker's host.", (worker) => worker.disk_free_bytes);
    ofWorkers("sandgate_worker_resident_bytes", "Memory of the worker process.", (worker) => worker.rss_bytes);
    ofWorkers("sandgate_worker_snapshots_taken", "Snapshots taken since the worker's start.", ({ snapshots }) => snapshots?.taken ?? 0);
    ofWorkers("sandgate_worker_snapshot_pause_ms", "How long sandboxes stood still for snapshots, in all.", ({ snapshots }) => snapshots?.pause_ms_total ?? 0);
    ofWorkers("sandgate_worker_snapshot_pause_max_ms", "The longest time that a sandbox stood still.", ({ snapshots }) => snapshots?.pause_ms_max ?? 0);
    ofWorkers("sandgate_worker_archive_pending_bytes", "Snapshot layers to be archived.", ({ snapshots }) => snapshots?.archive_pending_bytes ?? 0);
    gauge(registers, "sandgate_worker_limit_enforced", "Whether the worker's kernel enforces the limit.", ["worker", "limit"], (set) => {
      for (const { worker } of context.workers.workers()) {
        for (const check of worker.host) if (check.name.endsWith("_limit")) set({ worker: worker.id, limit: check.name }, check.ok ? 1 : 0);
      }
    });
  }

  /** Counts an exchange that is over. */
  observe(exchange: Exchange): void {
    const series = this.#seriesOf(exchange.route, exchange.status);
    const seconds = (performance.now() - exchange.startedAtMs) / 1_000;
    series.count++;
    series.seconds += seconds;
    for (let at = 0; at < bounds.length; at++) {
      if (seconds > (bounds[at] as number)) continue;
      series.within[at] = (series.within[at] as number) + 1;
      return;
    }
  }

  #seriesOf(route: Route | undefined, status: number): Series {
    const ofRoute = this.#series.get(route) ?? new Map<number, Series>();
    this.#series.set(route, ofRoute);
    let series = ofRoute.get(status);
    if (!series) {
      const path = route?.path ?? "other";
      const labels = `method="${route?.method ?? "other"}",path="${path}",status="${status || "aborted"}"`;
      series = { labels, path, count: 0, seconds: 0, within: bounds.map(() => 0) };
      ofRoute.set(status, series);
    }
    return series;
  }

  /** The counted calls as Prometheus text. */
  #calls(): string {
    const all = [...this.#series.values()].flatMap((ofRoute) => [...ofRoute.values()]);
    const counts = all.map(({ labels, count }) => `sandgate_http_requests_total{${labels}} ${count}`);
    const durations = [...Map.groupBy(all, ({ path }) => path)].flatMap(([path, series]) => histogram(path, series));
    return [
      "# HELP sandgate_http_requests_total Answered calls.",
      "# TYPE sandgate_http_requests_total counter",
      ...counts,
      "# HELP sandgate_http_request_duration_seconds Time from the request to the end of its answer.",
      "# TYPE sandgate_http_request_duration_seconds histogram",
      ...durations,
      "",
    ].join("\n");
  }

  /** Serves /metrics on loopback. */
  async listen(port: number): Promise<Server> {
    const server = createServer(async (request, response) => {
      if (request.url !== "/metrics") return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": this.#registry.contentType }).end(`${await this.#registry.metrics()}\n${this.#calls()}`);
    });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
    return server;
  }
}

const name = "sandgate_http_request_duration_seconds";

function histogram(path: string, series: readonly Series[]): string[] {
  const total = (pick: (one: Series) => number): number => series.reduce((sum, one) => sum + pick(one), 0);
  let within = 0;
  const buckets = bounds.map((bound, at) => {
    within += total((one) => one.within[at] as number);
    return `${name}_bucket{le="${bound}",path="${path}"} ${within}`;
  });
  const count = total((one) => one.count);
  return [
    ...buckets,
    `${name}_bucket{le="+Inf",path="${path}"} ${count}`,
    `${name}_sum{path="${path}"} ${total((one) => one.seconds)}`,
    `${name}_count{path="${path}"} ${count}`,
  ];
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
