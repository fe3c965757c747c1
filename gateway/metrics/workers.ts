/** Metrics that workers report in their heartbeats, labelled with the worker's id, which it keeps across restarts. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { WorkerMetrics, WorkerPresence } from "../../shared/bus/heartbeat.ts";
import type { Observed } from "../../shared/util/histogram.ts";
import { collect, type Reading } from "./collect.ts";
import { type Format, histogramText } from "./text.ts";

type Read = (worker: WorkerPresence) => number | undefined;

const gauges: readonly (readonly [name: string, help: string, read: Read])[] = [
  ["sandboxes", "Sandboxes on the worker.", ({ sandboxes }) => sandboxes],
  ["activities", "Commands and transfers running on the worker.", ({ executions }) => executions],
  ["sessions", "Live sessions whose command runs on the worker.", ({ sessions }) => sessions],
  ["pool_containers", "Warm containers waiting to become sandboxes.", ({ metrics }) => metrics?.pool.size],
  ["memory_free_bytes", "Free memory of the worker's host.", ({ memory_free_bytes }) => memory_free_bytes],
  ["disk_free_bytes", "Free disk space of the worker's host.", ({ disk_free_bytes }) => disk_free_bytes],
  ["strong_isolation", "Whether the worker can run strong sandboxes.", ({ strong }) => (strong ? 1 : 0)],
  ["resident_memory_bytes", "Resident memory of the worker process.", ({ rss_bytes }) => rss_bytes],
  ["snapshot_pause_max_seconds", "The longest pause of a sandbox for a snapshot.", ({ snapshots }) => snapshots && snapshots.pause_ms_max / 1_000],
  ["archive_pending_bytes", "Bytes of snapshot layers waiting to be archived.", ({ snapshots }) => snapshots?.archive_pending_bytes],
];

const counters: readonly (readonly [name: string, help: string, read: Read])[] = [
  ["executions_total", "Commands started.", ({ executions_total }) => executions_total],
  ["sessions_total", "Live sessions started.", ({ sessions_total }) => sessions_total],
  ["snapshots_taken_total", "Snapshots taken.", ({ snapshots }) => snapshots?.taken],
  ["pool_hits_total", "Sandboxes created from a warm container.", ({ metrics }) => metrics?.pool.hits],
  ["pool_misses_total", "Sandboxes that the pool could have served, but no warm container was available.", ({ metrics }) => metrics?.pool.misses],
];

const histograms: readonly (readonly [name: string, help: string, read: (metrics: WorkerMetrics) => Observed])[] = [
  ["create_duration_seconds", "Time from a create, restore or clone reaching the worker to the running sandbox.", ({ create }) => create],
  ["execute_start_duration_seconds", "Time from a command reaching the worker to its start.", ({ start }) => start],
  ["execute_duration_seconds", "Time from the start of a command to its end.", ({ run }) => run],
  ["snapshot_pause_seconds", "Time that a sandbox was paused for a snapshot.", ({ pause }) => pause],
];

/** Registers gauges and counters. @returns a function that renders the histograms, which the registry cannot hold. */
export function tellOfWorkers(registry: Registry, workers: () => readonly WorkerPresence[]): (format: Format) => string {
  const tell = (Kind: typeof Gauge | typeof Counter, name: string, help: string, read: () => Iterable<Reading>, ...labels: string[]): void =>
    collect(registry, Kind, `sandgate_worker_${name}`, help, read, "worker", ...labels);
  for (const [name, help, read] of gauges) tell(Gauge, name, help, () => valuesOf(workers(), read));
  for (const [name, help, read] of counters) tell(Counter, name, help, () => valuesOf(workers(), read));
  const refusals = () =>
    workers().flatMap(({ id, metrics }) => Object.entries(metrics?.refused ?? {}).map(([reason, count]) => [{ worker: id, reason }, count] as const));
  tell(Counter, "refusals_total", "Calls that the worker refused, by the limit reached.", refusals, "reason");
  const limits = () =>
    workers().flatMap(({ id, host }) => host.flatMap(({ name, ok }) => (name.endsWith("_limit") ? [[{ worker: id, limit: name }, ok ? 1 : 0] as const] : [])));
  tell(Gauge, "limit_enforced", "Whether the worker's kernel enforces the limit.", limits, "limit");
  const checks = () => workers().flatMap(({ id, host }) => host.map(({ name, ok }) => [{ worker: id, check: name }, ok ? 1 : 0] as const));
  tell(Gauge, "host_check", "Whether the worker's host has what the check is about.", checks, "check");
  return (format) => histograms.map(([name, help, read]) => histogramText(`sandgate_worker_${name}`, help, observedBy(workers(), read), format)).join("");
}

function valuesOf(workers: readonly WorkerPresence[], read: Read): Reading[] {
  return workers.flatMap((worker) => {
    const value = read(worker);
    return value === undefined ? [] : [[{ worker: worker.id }, value] as const];
  });
}

const observedBy = (workers: readonly WorkerPresence[], read: (metrics: WorkerMetrics) => Observed): { labels: { worker: string }; observed: Observed }[] =>
  workers.flatMap(({ id, metrics }) => (metrics ? [{ labels: { worker: id }, observed: read(metrics) }] : []));
