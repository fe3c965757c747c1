/** Starts a gateway: connect, bring accounts, keys and the directory into memory, then listen. */

import { flushCompileCache } from "node:module";
import { gatewayAccess } from "../shared/bus/access.ts";
import { BucketWriter } from "../shared/bus/kv.ts";
import { SandboxEntry, SnapshotEntry } from "../shared/bus/messages.ts";
import { Bus } from "../shared/bus/nats.ts";
import { PeerWatch } from "../shared/bus/presence.ts";
import { makeLayerStore } from "../shared/bus/storage.ts";
import { buckets, peers as names } from "../shared/bus/subjects.ts";
import { ConfigError, loadConfig, operatorSocketOf } from "../shared/config.ts";
import { SandgateError } from "../shared/errors.ts";
import { checker } from "../shared/schemas/validate.ts";
import { StreamHub } from "../shared/stream/hub.ts";
import { watchUncaught } from "../shared/util/background.ts";
import { newId } from "../shared/util/ids.ts";
import { Lifecycle, stopOnRequest } from "../shared/util/lifecycle.ts";
import { createLogger } from "../shared/util/log.ts";
import { Semaphore } from "../shared/util/mutex.ts";
import { pause, until } from "../shared/waiting.ts";
import { Authenticator } from "./accounts/auth.ts";
import { bootstrap } from "./accounts/bootstrap.ts";
import { BrowserSessions } from "./accounts/browser-sessions.ts";
import { KeyUses } from "./accounts/key-uses.ts";
import { LoginAttempts } from "./accounts/login-attempts.ts";
import { Passwords } from "./accounts/passwords.ts";
import { openRecords } from "./accounts/records.ts";
import { RevokedKeys } from "./accounts/revoked-keys.ts";
import { Admission } from "./api/admission.ts";
import { logWhenOver } from "./api/audit.ts";
import { endWithTheirRights } from "./api/ended.ts";
import { servePeers } from "./api/peers.ts";
import { handle, type Pipeline } from "./api/pipeline.ts";
import { CallLimits } from "./api/rate.ts";
import { routes } from "./api/routes.ts";
import type { GatewayContext } from "./context.ts";
import { loadDashboard } from "./dashboard/files.ts";
import { SandboxDirectory } from "./fleet/directory.ts";
import { Dispatcher } from "./fleet/dispatch.ts";
import { EntryMirror } from "./fleet/entries.ts";
import { LayerCollector } from "./fleet/layers.ts";
import { SnapshotDirectory } from "./fleet/snapshots.ts";
import { startSweeping } from "./fleet/sweep.ts";
import { notFound } from "./handlers/pages.ts";
import type { Exchange } from "./http/exchange.ts";
import { Hosts } from "./http/hosts.ts";
import { listen } from "./http/server.ts";
import { AddressLimit } from "./limit/addresses.ts";
import { Idempotency, IdempotencyRecord, idempotencyMs } from "./limit/idempotency.ts";
import { Ownership } from "./limit/ownership.ts";
import { RateLimiter } from "./limit/rates.ts";
import { Reservations } from "./limit/reservations.ts";
import { Pace } from "./live/pace.ts";
import { Sockets } from "./live/sockets.ts";
import { SessionTokens } from "./live/tokens.ts";
import { AccountActivity, minuteMs } from "./metrics/activity.ts";
import { Metrics } from "./metrics/metrics.ts";
import { AccountUsage } from "./metrics/usage.ts";

/** EX_CONFIG of sysexits.h: starting again would fail in the same way. */
const exitConfig = 78;
const pollMs = 50;
const endMs = 1_000;
const meetMs = 200;

async function main(): Promise<void> {
  const config = loadConfig();
  const log = createLogger("gateway", config.logLevel);
  watchUncaught(log, (code) => process.exit(code));
  const lifecycle = new Lifecycle(log);
  stopOnRequest(lifecycle, (code) => process.exit(code));

  const id = newId("gateway");
  const peer = names.gateway(id);
  const loading = loadDashboard();
  // Whoever waits for it later is told.
  loading.catch(() => {});
  const bus = await Bus.connect(config.natsUrl, `sandgate-gateway-${id}`, log, gatewayAccess(config, peer));
  lifecycle.onStop("bus", () => bus.close());
  await makeLayerStore(bus, config.snapshotArchiveBytesMax);
  const mirror = await EntryMirror.watch(bus, buckets.sandboxes, checker(SandboxEntry), log);
  const snapshotMirror = await EntryMirror.watch(bus, buckets.snapshots, checker(SnapshotEntry), log);
  const records = await openRecords(bus, config, log);
  lifecycle.onStop("mirrors", () => [records, mirror, snapshotMirror].forEach((part) => part.stop()));
  await bootstrap(config, records, log);

  const layers = await LayerCollector.open(bus);
  const peers = new PeerWatch(bus, peer, log, () => ({ gateway: true }));
  const hub = new StreamHub(bus, peers, log);
  const sandboxes = new SandboxDirectory(mirror);
  const ownership = new Ownership(bus, peers, log);
  const rates = new RateLimiter(bus, ownership);
  const reservations = new Reservations(bus, peers, ownership, sandboxes, log);
  const answers = await BucketWriter.open(bus, buckets.idempotency, checker(IdempotencyRecord), { ttlMs: idempotencyMs });
  const idempotency = new Idempotency(bus, peers, answers);
  const activity = new AccountActivity(sandboxes, log);
  const sessions = new BrowserSessions(records, config, log);
  const dashboard = await loading;
  const tokens = new SessionTokens(bus, id);
  const sockets = new Sockets(config.sessionSocketsMax, log);
  const failures = new AddressLimit(config.authFailuresPerAddress, minuteMs, "too many failed authentications from this address");
  const passwords = new Passwords();
  const context: GatewayContext = {
    config,
    log,
    peers,
    hub,
    workers: new Dispatcher(bus, peers),
    sandboxes,
    snapshots: new SnapshotDirectory(snapshotMirror, layers),
    records,
    sessions,
    passwords,
    loginAttempts: new LoginAttempts({ config, records, passwords, rates, failures }),
    authenticator: new Authenticator(records, sessions, config),
    rates,
    failures,
    signUps: new AddressLimit(config.signUpsPerAddress, 60 * minuteMs, "too many new accounts from this address"),
    reservations,
    idempotency,
    usage: new AccountUsage(bus, ownership, activity),
    tokens,
    sockets,
    pace: new Pace(),
    dashboard,
    outputMemory: new Semaphore(Math.max(config.syncMemoryBytesMax, 2 * config.syncOutputBytesMax)),
    isConnected: () => bus.connected,
  };
  servePeers(bus, { ownership, rates, reservations, idempotency, activity, tokens });
  const admission = new Admission(config.requestsMax);
  endWithTheirRights(records, context.authenticator, admission, sockets, log);
  new RevokedKeys(records, config.revokedKeysMs, () => ownership.ownerOf("revoked-keys") === peer, log).start();
  await meetPeers(bus, peers);
  const { accounts, keys, keyUse, logins } = records;
  lifecycle.onStop(
    "sweep",
    startSweeping({
      isMine: () => ownership.ownerOf("sweep") === peer,
      layers,
      log,
      snapshots: snapshotMirror,
      buckets: [mirror, snapshotMirror, accounts, keys, keyUse, logins],
    }),
  );
  lifecycle.onStop("presence", () => {
    ownership.leave();
    peers.leave();
  });

  const use = new KeyUses(records.keyUse, log);
  const limits = new CallLimits(rates, (caller, granted) => {
    activity.count(caller, granted);
    use.note(caller);
  });
  const hosts = new Hosts(config);
  const metrics = new Metrics({ ...context, inProgress: () => admission.inProgress });
  if (config.metricsPort) {
    const metricsServer = await metrics.listen(config.metricsHost, config.metricsPort, hosts);
    if (!isLoopback(config.metricsHost)) {
      log.warn({ event: "metrics_exposed", host: config.metricsHost }, "/metrics asks for no key: whoever reaches SANDGATE_METRICS_HOST can read it");
    }
    lifecycle.onStop("metrics", () => void metricsServer.close());
  }
  const pipeline: Pipeline = { context, admission, limits, log };
  const server = await listen(config.host, config.port, {
    routes,
    corsOrigins: config.corsOrigins,
    hosts,
    operatorSocket: operatorSocketOf(config.dataDir),
    log,
    handle: (exchange, route) => handle(pipeline, exchange, route),
    notFound: (exchange) => notFound(context, exchange),
    observe: (exchange) => metrics.observe(exchange),
    ...(config.accessLog ? { begun: (exchange: Exchange) => logWhenOver(log, exchange, config.trustProxy) } : {}),
  });
  lifecycle.onStop("server", () => server.close());
  lifecycle.onStop("drain", () => {
    sockets.drain();
    return drain(admission, hub, config.drainMs);
  });
  lifecycle.onStop("listener", () => server.stopListening());
  log.info({ event: "ready", port: server.port, host: config.host, gateway: peer }, "the gateway is ready");
  // What was compiled for this start is there for the next one, also when this process is killed.
  flushCompileCache();
}

const isLoopback = (host: string): boolean => /^(127\..*|::1|localhost)$/.test(host);

/** Other gateways answer the first heartbeat at once: they must be known before calls are counted here. */
async function meetPeers(bus: Bus, peers: PeerWatch): Promise<void> {
  peers.start();
  await bus.connection.flush();
  await pause(meetMs);
}

/** New calls get 503; running ones finish, or end with an error when their time is up. */
async function drain(admission: Admission, hub: StreamHub, drainMs: number): Promise<void> {
  admission.drain();
  const idle = (timeoutMs: number): Promise<boolean> => until(() => admission.inProgress === 0, { timeoutMs, pollMs });
  await idle(drainMs);
  hub.abortAll(new SandgateError("unavailable", "the gateway is shutting down"));
  await idle(endMs);
}

main().catch((error: unknown) => {
  const log = createLogger("gateway", "info");
  if (error instanceof ConfigError) log.fatal({ event: "config" }, error.message);
  else log.fatal({ err: error }, "the gateway could not start");
  process.exit(error instanceof ConfigError ? exitConfig : 1);
});
