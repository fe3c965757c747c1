/** Prometheus metrics of the gateway and of the workers it hears from, served on a separate listener. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { AuditRecord } from "../../shared/bus/audit-record.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import type { Config } from "../../shared/config.ts";
import { errorCodes } from "../../shared/errors.ts";
import type { StreamHub } from "../../shared/stream/hub.ts";
import { Histogram } from "../../shared/util/histogram.ts";
import { isLoopback } from "../../shared/util/host.ts";
import type { Logger } from "../../shared/util/log.ts";
import { nodeHttp } from "../../shared/util/node-http.ts";
import type { Dispatcher } from "../fleet/dispatch.ts";
import type { SandboxDirectory } from "../fleet/sandboxes.ts";
import type { Endpoint, Exchange } from "../http/exchange.ts";
import type { Hosts } from "../http/hosts.ts";
import type { Sockets } from "../live/sockets.ts";
import { collect } from "./collect.ts";
import { tellOfServers } from "./servers.ts";
import { tellOfStorage } from "./storage.ts";
import { type Format, formatFor, histogramText, openMetricsOf } from "./text.ts";
import { tellOfWorkers } from "./workers.ts";

/** The calls of one method, path and status. Plain numbers, because counting with prom-client costs more than a cheap call. */
interface Series {
  readonly labels: Readonly<Record<"method" | "path" | "status", string>>;
  readonly durations: Histogram;
  count: number;
}

/** How often the lag of the event loop is looked at. Each look wakes an idle gateway: every 10 ms takes 1.5 % of a CPU. */
const lagSampleMs = 200;

const contentTypes: Readonly<Record<Format, string>> = { prometheus: Registry.PROMETHEUS_CONTENT_TYPE, openmetrics: Registry.OPENMETRICS_CONTENT_TYPE };

interface Parts {
  readonly log: Logger;
  readonly bus: Bus;
  readonly hub: StreamHub;
  readonly sockets: Sockets;
  readonly workers: Dispatcher;
  readonly sandboxes: Pick<SandboxDirectory, "countsByWorker">;
  readonly auditRecord: Pick<AuditRecord, "lost">;
  /** The number of calls in progress. */
  readonly inProgress: () => number;
}

export class Metrics {
  readonly #registry = new Registry();
  /** By route and status, so that no label string is built per call. HEAD counts as GET. */
  readonly #series = new Map<Endpoint | undefined, Map<number, Series>>();
  readonly #durations = new Map<string, Histogram>();
  readonly #errors = new Map<string, number>(errorCodes.map((code) => [code, 0]));
  readonly #workers: (format: Format) => string;
  readonly #askServers: readonly (() => Promise<void>)[];
  readonly #log: Logger;

  constructor({ log, bus, hub, sockets, workers, sandboxes, auditRecord, inProgress }: Parts) {
    this.#log = log;
    this.#collectProcess();
    const registry = this.#registry;
    collect(registry, Gauge, "sandgate_calls_in_progress", "Calls in progress.", () => [[{}, inProgress()]]);
    collect(registry, Gauge, "sandgate_streams_open", "Streams between this gateway and workers.", () => [[{}, hub.open]]);
    const streams = () => Object.entries(hub.lines.counts).map(([way, count]) => [{ way }, count] as const);
    collect(
      registry,
      Counter,
      "sandgate_streams_total",
      "Streams that began, or went on, over a Unix socket, over TLS to another machine, or over NATS.",
      streams,
      "way",
    );
    collect(registry, Gauge, "sandgate_session_sockets_open", "WebSockets of live sessions on this gateway.", () => [[{}, sockets.size]]);
    collect(registry, Counter, "sandgate_audit_entries_lost_total", "Entries that are not in the audit record.", () => [[{}, auditRecord.lost]]);
    const requests = () => this.#all().map(({ labels, count }) => [labels, count] as const);
    collect(registry, Counter, "sandgate_http_requests_total", "Calls answered, by method, path and status.", requests, "method", "path", "status");
    const errors = () => [...this.#errors].map(([code, count]) => [{ code }, count] as const);
    collect(registry, Counter, "sandgate_http_errors_total", "Calls refused or failed, by error code.", errors, "code");
    const present = () => workers.workers().map(({ worker }) => worker.id);
    const away = () => [...sandboxes.countsByWorker().keys()].filter((id) => !workers.has(id));
    const up = () => [...present().map((worker) => [{ worker }, 1] as const), ...away().map((worker) => [{ worker }, 0] as const)];
    collect(registry, Gauge, "sandgate_worker_up", "Whether the worker is there; 0 for one that is away and has sandboxes.", up, "worker");
    this.#askServers = [tellOfStorage(registry, bus), tellOfServers(registry, bus)];
    this.#workers = tellOfWorkers(this.#registry, () => workers.workers().map(({ worker }) => worker));
  }

  /** Counts a finished exchange. */
  observe(exchange: Exchange): void {
    const series = this.#seriesOf(exchange.endpoint, exchange.status);
    series.count++;
    series.durations.observe((performance.now() - exchange.startedAtMs) / 1_000, exchange.trace);
    const code = exchange.errorCode;
    if (code !== undefined) this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1);
  }

  /** Serves /metrics if a port is configured. @returns a function that stops it. */
  async listen({ metricsHost: host, metricsPort: port }: Config, hosts: Hosts): Promise<() => void> {
    if (!port) return () => {};
    if (!isLoopback(host)) {
      this.#log.warn({ event: "metrics_exposed", host }, "/metrics needs no key: anyone who can reach SANDGATE_METRICS_HOST can read it");
    }
    const server = nodeHttp.createServer(async (request, response) => {
      try {
        hosts.refuseForeign(request.headers.host ?? "");
      } catch (error) {
        return void response.writeHead(400, { connection: "close" }).end(`${(error as Error).message}\n`);
      }
      if (request.url !== "/metrics") return void response.writeHead(404).end();
      const format = formatFor(request.headers.accept ?? "");
      const text = await this.#text(format).catch((err) => this.#log.error({ err }, "could not collect the metrics"));
      if (text === undefined) return void response.writeHead(500).end();
      response.writeHead(200, { "content-type": contentTypes[format], vary: "accept" }).end(text);
    });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
    return () => void server.close();
  }

  async #text(format: Format): Promise<string> {
    await Promise.all(this.#askServers.map((ask) => ask()));
    const durations = [...this.#durations].map(([path, observed]) => ({ labels: { path }, observed }));
    const help = "Time from the request to the end of its response.";
    const histogram = histogramText("sandgate_http_request_duration_seconds", help, durations, format);
    const text = [await this.#registry.metrics(), histogram, this.#workers(format)].join("\n");
    return format === "openmetrics" ? openMetricsOf(text) : text;
  }

  #all(): Series[] {
    return [...this.#series.values()].flatMap((ofRoute) => [...ofRoute.values()]);
  }

  #seriesOf(route: Endpoint | undefined, status: number): Series {
    let series = this.#series.get(route)?.get(status);
    if (!series) {
      const path = route?.path ?? "other";
      const durations = this.#durations.get(path) ?? new Histogram();
      this.#durations.set(path, durations);
      series = { labels: { method: route?.method ?? "other", path, status: status ? String(status) : "aborted" }, durations, count: 0 };
      this.#series.set(route, (this.#series.get(route) ?? new Map<number, Series>()).set(status, series));
    }
    return series;
  }

  /** Collects memory, CPU and so on of this process, without the gauges that prom-client misnames `_total`. */
  #collectProcess(): void {
    collectDefaultMetrics({ register: this.#registry, prefix: "sandgate_gateway_", eventLoopMonitoringPrecision: lagSampleMs });
    for (const metric of this.#registry.getMetricsAsArray()) {
      if (metric instanceof Gauge && metric.name.endsWith("_total")) this.#registry.removeSingleMetric(metric.name);
    }
  }
}
