/** Starts a gateway: connect, bring accounts, keys and the directory into memory, then listen. */
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, loadConfig } from "../shared/config.ts";
import { SandgateError } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import { BucketMirror } from "../shared/kv.ts";
import { Lifecycle, stopOnRequest } from "../shared/lifecycle.ts";
import { createLogger } from "../shared/log.ts";
import { Semaphore } from "../shared/mutex.ts";
import { Bus } from "../shared/nats.ts";
import { PeerWatch } from "../shared/presence.ts";
import { AccountRecord, KeyRecord, SandboxEntry } from "../shared/schemas/messages.ts";
import { checker } from "../shared/schemas/validate.ts";
import { StreamHub } from "../shared/stream/hub.ts";
import { buckets } from "../shared/subjects.ts";
import { Admission } from "./admission.ts";
import { Authenticator } from "./auth.ts";
import { bootstrap } from "./bootstrap.ts";
import type { GatewayContext } from "./context.ts";
import { SandboxDirectory } from "./directory.ts";
import { Dispatcher } from "./dispatch.ts";
import { listen } from "./http/server.ts";
import { Metrics } from "./metrics.ts";
import { handle, type Pipeline } from "./pipeline.ts";
import { routes } from "./routes.ts";

/** EX_CONFIG of sysexits.h: starting again would fail in the same way. */
const exitConfig = 78;
const pollMs = 50;
const endMs = 1_000;

async function main(): Promise<void> {
  const config = loadConfig();
  const log = createLogger("gateway", config.logLevel);
  const lifecycle = new Lifecycle(log);
  stopOnRequest(lifecycle, (code) => process.exit(code));

  const peer = newId("gateway");
  const bus = await Bus.connect(config.natsUrl, `sandgate-gateway-${peer}`, log);
  lifecycle.onStop("bus", () => bus.close());
  const accounts = await BucketMirror.watch(bus, buckets.accounts, checker(AccountRecord), log);
  const keys = await BucketMirror.watch(bus, buckets.keys, checker(KeyRecord), log);
  const sandboxes = await BucketMirror.watch(bus, buckets.sandboxes, checker(SandboxEntry), log);
  lifecycle.onStop("mirrors", () => [accounts, keys, sandboxes].forEach((mirror) => mirror.stop()));
  await bootstrap(config, accounts, keys, log);

  const peers = new PeerWatch(bus, peer, log, () => ({}));
  lifecycle.onStop("presence", () => peers.leave());
  peers.start();
  const hub = new StreamHub(bus, peers, log);
  const context: GatewayContext = {
    config,
    log,
    peers,
    hub,
    workers: new Dispatcher(bus, peers),
    sandboxes: new SandboxDirectory(sandboxes),
    outputMemory: new Semaphore(Math.max(config.syncMemoryBytesMax, 2 * config.syncOutputBytesMax)),
    isConnected: () => bus.connected,
  };
  const admission = new Admission(config.requestsMax);
  const pipeline: Pipeline = { context, authenticator: new Authenticator(accounts, keys), admission, log };
  const metrics = new Metrics(context, () => admission.inProgress);
  if (config.metricsPort) {
    const metricsServer = await metrics.listen(config.metricsPort);
    lifecycle.onStop("metrics", () => void metricsServer.close());
  }
  const server = await listen(config.host, config.port, {
    routes,
    corsOrigins: config.corsOrigins,
    log,
    handle: (exchange, route) => handle(pipeline, exchange, route),
    observe: (exchange, route) => metrics.observe(exchange, route),
  });
  lifecycle.onStop("server", () => server.close());
  lifecycle.onStop("drain", () => drain(admission, hub, config.drainMs));
  lifecycle.onStop("listener", () => server.stopListening());
  log.info({ event: "ready", port: server.port, host: config.host, gateway: peer }, "the gateway is ready");
}

/** New calls get 503; running ones finish, or end with an error when their time is up. */
async function drain(admission: Admission, hub: StreamHub, drainMs: number): Promise<void> {
  admission.drain();
  const idle = async (timeoutMs: number): Promise<void> => {
    for (const deadline = Date.now() + timeoutMs; admission.inProgress > 0 && Date.now() < deadline; ) await sleep(pollMs);
  };
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
