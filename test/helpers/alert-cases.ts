/** For each alert rule that comes with the product, series by which it fires and others by which it does not. */
import { auditSubjects, bucketStream, buckets } from "../../shared/bus/subjects.ts";
import { boundsS } from "../../shared/util/histogram.ts";

/** In the notation of `promtool test rules`: a series with its labels, and its values, one a minute. */
type Series = Readonly<Record<string, string>>;

interface AlertCase {
  readonly alert: string;
  /** The minute at which it is looked at. */
  readonly minute: number;
  readonly fires: Series;
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly silent: Series;
}

const scraped = { job: "sandgate", instance: "gw:9464" };
const GiB = 1024 ** 3;

/** A series as Prometheus names it after it has read it from a gateway. */
const series = (name: string, labels: Readonly<Record<string, string>> = {}): string =>
  `${name}{${Object.entries({ ...scraped, ...labels })
    .map(([label, value]) => `${label}="${value}"`)
    .join(", ")}}`;

const worker = { worker: "wk_1" };
const calls = (status: string): string => series("sandgate_http_requests_total", { method: "GET", path: "/v1/sandboxes/list", status });
const refusals = (reason: string): string => series("sandgate_worker_refusals_total", { ...worker, reason });

/** Creates of which each took at most so long. */
function creates(atMostS: number): Series {
  const counted = (bound: number): string => (bound >= atMostS ? "0+10x40" : "0+0x40");
  const bucket = (le: string): string => series("sandgate_worker_create_duration_seconds_bucket", { ...worker, le });
  return Object.fromEntries(
    [...boundsS, Number.POSITIVE_INFINITY].map((bound) => [bucket(bound === Number.POSITIVE_INFINITY ? "+Inf" : String(bound)), counted(bound)]),
  );
}

const keys = { stream: bucketStream(buckets.keys) };

const copies = (wanted: number, current: number): Series => ({
  [series("sandgate_storage_copies", keys)]: `${wanted}x20`,
  [series("sandgate_storage_copies_current", keys)]: `${current}x20`,
});

const filled = (stream: Readonly<Record<string, string>>, percent: number): Series => ({
  [series("sandgate_storage_bytes", stream)]: `${percent}x20`,
  [series("sandgate_storage_max_bytes", stream)]: "100x20",
});

export const alertCases: readonly AlertCase[] = [
  {
    alert: "SandgateGatewayDown",
    minute: 2,
    fires: { [series("up")]: "0x5" },
    labels: { ...scraped, severity: "critical" },
    summary: "The gateway at gw:9464 does not answer",
    silent: { [series("up")]: "1x5" },
  },
  {
    alert: "SandgateWorkerLost",
    minute: 2,
    fires: { [series("sandgate_worker_up", worker)]: "0x5" },
    labels: { ...worker, severity: "critical" },
    summary: "Worker wk_1 is gone, and its sandboxes with it",
    silent: { [series("sandgate_worker_up", worker)]: "1x5" },
  },
  {
    alert: "SandgateNoWorkers",
    minute: 2,
    fires: { [series("sandgate_worker_up", worker)]: "0x5" },
    labels: { severity: "critical" },
    summary: "No worker is there, so nothing can be run",
    silent: { [series("sandgate_worker_up", worker)]: "0x5", [series("sandgate_worker_up", { worker: "wk_2" })]: "1x5" },
  },
  {
    alert: "SandgateServerErrors",
    minute: 15,
    fires: { [calls("503")]: "0+3x20", [calls("200")]: "0+97x20" },
    labels: { severity: "warning" },
    summary: "3% of the calls end with a server error",
    silent: { [calls("503")]: "0+1x20", [calls("429")]: "0+50x20", [calls("200")]: "0+99x20" },
  },
  {
    alert: "SandgateNoRoom",
    minute: 15,
    fires: { [refusals("memory")]: "0+1x20" },
    labels: { ...worker, reason: "memory", severity: "warning" },
    summary: "Worker wk_1 refuses sandboxes for lack of memory",
    silent: { [refusals("memory")]: "7x20", [refusals("commands")]: "0+9x20" },
  },
  {
    alert: "SandgateCreateSlow",
    minute: 30,
    fires: creates(10),
    labels: { ...worker, severity: "warning" },
    summary: "One in twenty creates on wk_1 takes longer than 9.75s",
    silent: creates(2.5),
  },
  {
    alert: "SandgateLimitNotEnforced",
    minute: 15,
    fires: { [series("sandgate_worker_limit_enforced", { ...worker, limit: "memory_limit" })]: "0x20" },
    labels: { ...scraped, ...worker, limit: "memory_limit", severity: "warning" },
    summary: "The kernel of wk_1 does not enforce memory_limit; it is only watched",
    silent: { [series("sandgate_worker_limit_enforced", { ...worker, limit: "memory_limit" })]: "1x20" },
  },
  {
    alert: "SandgateHostLacks",
    minute: 15,
    fires: { [series("sandgate_worker_host_check", { ...worker, check: "user_ids" })]: "0x20" },
    labels: { ...scraped, ...worker, check: "user_ids", severity: "info" },
    summary: "The host of wk_1 lacks user_ids; the worker has said why when it started",
    silent: {
      [series("sandgate_worker_host_check", { ...worker, check: "user_ids" })]: "1x20",
      [series("sandgate_worker_host_check", { ...worker, check: "memory_limit" })]: "0x20",
    },
  },
  {
    alert: "SandgateDiskLow",
    minute: 10,
    fires: { [series("sandgate_worker_disk_free_bytes", worker)]: `${4 * GiB}x20` },
    labels: { ...worker, severity: "warning" },
    summary: "Worker wk_1 has 4GiB of disk left",
    silent: { [series("sandgate_worker_disk_free_bytes", worker)]: `${6 * GiB}x20` },
  },
  {
    alert: "SandgateArchiveBehind",
    minute: 40,
    fires: { [series("sandgate_worker_archive_pending_bytes", worker)]: `${21 * GiB}x50` },
    labels: { ...worker, severity: "warning" },
    summary: "21GiB of snapshots of wk_1 are not in the object store yet, and would be lost with it",
    silent: { [series("sandgate_worker_archive_pending_bytes", worker)]: `${21 * GiB}x20 0x30` },
  },
  {
    alert: "SandgateAuditLost",
    minute: 5,
    fires: { [series("sandgate_audit_entries_lost_total")]: "0 0 5x10" },
    labels: { ...scraped, severity: "warning" },
    summary: "The gateway at gw:9464 has lost entries of the audit record; they are in its log only",
    silent: { [series("sandgate_audit_entries_lost_total")]: "5x10" },
  },
  {
    alert: "SandgateGatewayBusy",
    minute: 30,
    fires: { [series("sandgate_gateway_process_cpu_seconds_total")]: "0+58x40" },
    labels: { ...scraped, severity: "warning" },
    summary: "The gateway at gw:9464 uses its CPU fully; start another one on its port",
    silent: { [series("sandgate_gateway_process_cpu_seconds_total")]: "0+30x40" },
  },
  {
    alert: "SandgateBusLost",
    minute: 5,
    fires: { [series("sandgate_bus_up")]: "0x10" },
    labels: { ...scraped, severity: "critical" },
    summary: "The gateway at gw:9464 reaches no NATS server that can store something",
    silent: { [series("sandgate_bus_up")]: "1x10" },
  },
  {
    alert: "SandgateNatsSlowConsumers",
    minute: 5,
    fires: { [series("sandgate_nats_slow_consumers_total", { server: "nats" })]: "0 0 1x10" },
    labels: { server: "nats", severity: "warning" },
    summary: "The NATS server nats has closed connections that did not keep up; gateways and workers lack CPU or network",
    silent: { [series("sandgate_nats_slow_consumers_total", { server: "nats" })]: "3x10" },
  },
  {
    alert: "SandgateStorageAway",
    minute: 5,
    fires: { [series("sandgate_storage_up", keys)]: "0x10" },
    labels: { ...keys, severity: "critical" },
    summary: "No NATS server leads KV_sandgate_keys, so what is in it can be neither read nor changed",
    silent: { [series("sandgate_storage_up", keys)]: "1x10" },
  },
  {
    alert: "SandgateCopiesMissing",
    minute: 15,
    fires: copies(3, 2),
    labels: { ...keys, severity: "warning" },
    summary: "1 NATS servers lack KV_sandgate_keys or its latest changes; see: sandgate-admin cluster",
    silent: copies(3, 3),
  },
  {
    alert: "SandgateStorageFull",
    minute: 15,
    fires: filled(keys, 95),
    labels: { ...keys, severity: "warning" },
    summary: "KV_sandgate_keys is full to 95%, and then refuses what is new",
    // Old entries of the audit record make room for new ones.
    silent: { ...filled(keys, 80), ...filled({ stream: auditSubjects.stream }, 99) },
  },
];

const inputOf = (given: Series) => Object.entries(given).map(([name, values]) => ({ series: name, values }));

/** What `promtool test rules` reads; JSON is YAML. */
export function alertTests(rulesFile: string): string {
  const tests = alertCases.flatMap(({ alert, minute, fires, labels, summary, silent }) =>
    [
      { name: `${alert} fires`, given: fires, expected: [{ exp_labels: labels, exp_annotations: { summary } }] },
      { name: `${alert} is silent`, given: silent, expected: [] },
    ].map(({ name, given, expected }) => ({
      ...{ name, interval: "1m", input_series: inputOf(given) },
      alert_rule_test: [{ eval_time: `${minute}m`, alertname: alert, exp_alerts: expected }],
    })),
  );
  return JSON.stringify({ rule_files: [rulesFile], evaluation_interval: "1m", tests });
}

/** The series of all cases: the name of each, and its labels. */
export function alertSeries(): { readonly name: string; readonly labels: readonly string[] }[] {
  const all = alertCases.flatMap(({ fires, silent }) => [...Object.keys(fires), ...Object.keys(silent)]);
  return all.map((text) => ({ name: text.slice(0, text.indexOf("{")), labels: [...text.matchAll(/([a-z_]+)="/g)].map(([, label = ""]) => label).sort() }));
}
