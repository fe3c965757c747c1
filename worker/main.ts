/** Starts a worker: probes the host, opens the records, reconciles them with the containers, then answers calls. */
import { mkdirSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { ConfigError, loadConfig, markPrograms, takeServiceVariables } from "../shared/config.ts";
import { SandgateError } from "../shared/errors.ts";
import { armFaults } from "../shared/faults.ts";
import { errors } from "../shared/known-errors.ts";
import { startTracing } from "../shared/tracing/start.ts";
import { watchUncaught } from "../shared/util/background.ts";
import { exitNow } from "../shared/util/libc.ts";
import { createLogger } from "../shared/util/log.ts";
import { ServiceManager } from "../shared/util/service-manager.ts";
import { settleMemory } from "../shared/util/settle.ts";
import { Shutdown, stopOnRequest } from "../shared/util/shutdown.ts";
import { type Claim, ClaimRefused, WorkerForgotten } from "./claim.ts";
import { connect, type Ground, makeSandboxes, openDisk, openFiles, openRecords, openRuntime, openStorages } from "./compose.ts";
import type { WorkerContext } from "./context.ts";
import { drain } from "./drain.ts";
import { workerHome, workerIdentity } from "./identity.ts";
import { Phase } from "./phase.ts";
import { describeWorker } from "./presence.ts";
import { forgetRestored } from "./restored.ts";
import { HostUnfit } from "./runtime/host/host.ts";
import { probeHost } from "./runtime/host/probe.ts";
import { untilAbandonedEnd } from "./runtime/podman/abandoned.ts";
import { retryDeletions } from "./sandboxes/deletions.ts";
import { keepDirectory } from "./sandboxes/directory.ts";
import { reconcile } from "./sandboxes/reconcile.ts";
import { serve } from "./serve.ts";
import { reconcileSnapshots, thawSources } from "./snapshots/reconcile.ts";
import { watchSizes } from "./snapshots/sizes.ts";
import { StallWatch } from "./stall.ts";

/** EX_CONFIG of sysexits.h: another start would fail in the same way. */
const exitConfig = 78;
const exitFailure = 1;

async function main(): Promise<void> {
  const manager = new ServiceManager(takeServiceVariables());
  const ground = await layGround();
  const { log, shutdown } = ground;
  const disk = await openDisk(ground);
  const buses = await connect(ground).catch(async (error: unknown) => {
    if (error instanceof WorkerForgotten) await endGivenUp(ground);
    throw error;
  });
  shutdown.onStop("claim", endWhenReplaced(ground, buses.claim));
  const records = await openRecords(ground, disk, buses);
  const runtime = await openRuntime(ground);
  const stored = await openStorages(ground);
  if (stored.helper) disk.disks.growBy((moreBytes) => stored.helper?.growVolume(moreBytes) ?? Promise.resolve());
  const stopping = new AbortController();
  const files = await openFiles(ground, buses.bulk, records, runtime, stored, stopping.signal);
  const phase = new Phase();
  const work = makeSandboxes(ground, buses.hub, { records, runtime, stored, files }, () => phase.isServing);
  const context: WorkerContext = { ...ground, ...buses, ...records, ...runtime, ...stored, ...files, ...work, phase };

  await takeUp(context);
  shutdown.onStop("directory", keepDirectory(context));
  shutdown.onStop("deletions", retryDeletions(context));
  shutdown.onStop("sizes", watchSizes(context));
  await work.usage.start();
  shutdown.onStop("usage", () => work.usage.stop());
  serve(buses.bus, context);
  shutdown.onStop("presence", () => buses.peers.leave());
  shutdown.onStop("drain", async () => {
    await drain(context);
    stopping.abort(errors.stopping("worker"));
  });
  phase.serve();
  work.pool.start();
  buses.peers.start(() => describeWorker(context));
  // From here on calls reach this process. Without a connection they do as soon as there is one.
  await buses.bus.whileConnected(() => buses.bus.connection.flush()).catch((err) => log.debug({ err }, "the bus is away"));
  log.info(
    { event: "ready", worker: ground.workerId, peer: buses.peers.peer, host: { checks: [...ground.host.checks, stored.ids.check] } },
    "the worker is ready",
  );
  await manager.ready(shutdown, log);
  // Keeps the code compiled in this start for the next one, even if this process is killed.
  flushCompileCache();
  settleMemory();
}

async function layGround(): Promise<Ground> {
  const config = loadConfig();
  const log = createLogger("worker", config.logLevel);
  watchUncaught(log, exitNow);
  armFaults(config.testFault);
  const shutdown = new Shutdown(log);
  stopOnRequest(shutdown, (code) => process.exit(code));
  const dataDir = join(config.dataDir, "worker");
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const workerId = workerIdentity(config, dataDir);
  markPrograms(workerId);
  await startTracing({ config, log, shutdown }, "worker", workerId);
  const host = await probeHost(config, workerId);
  shutdown.onStop("control groups", () => host.groups?.close());
  return { config, log, shutdown, workerId, home: workerHome(dataDir, join(config.runtimeDir, workerId)), dataDir, host, stalls: new StallWatch() };
}

/**
 * Ends this process at once when its id is no longer its own: nothing here may be done any more, not even an orderly stop. That of
 * a worker that was forgotten is started again, and then ends what runs in its sandboxes, which nothing else brings back any more.
 */
function endWhenReplaced({ log }: Ground, claim: Claim): () => Promise<void> {
  const stopWatching = claim.watch(log, ({ why, isForgotten }) => {
    log.fatal({ event: "claim_lost" }, why);
    exitNow(isForgotten ? exitFailure : exitConfig);
  });
  return async () => {
    stopWatching();
    await claim.leave().catch((err) => log.debug({ err }, "the claim still names this process"));
  };
}

/** Removes the containers of sandboxes that an operator has given up, which nobody could end any more. Their files stay. */
async function endGivenUp(ground: Ground): Promise<void> {
  const { workerId, shutdown, log } = ground;
  await untilAbandonedEnd(workerId);
  const { podman } = await openRuntime(ground);
  await podman.endUnknown();
  const containers = await podman.list();
  for (const { containerId } of containers) await podman.remove(containerId);
  log.warn({ event: "sandboxes_ended", containers: containers.length }, "this worker was given up with its sandboxes: their containers are removed");
  await shutdown.stop("forgotten");
}

/** Reconciles records, files and containers with what the previous process left. */
async function takeUp(context: WorkerContext): Promise<void> {
  const { workerId, sandboxes, images, roots, log } = context;
  const killed = await untilAbandonedEnd(workerId);
  if (killed > 0) log.warn({ event: "programs_killed", programs: killed }, "podman commands of the previous process did not end and were killed");
  await thawSources(context);
  await images.start();
  await reconcile(context);
  context.settled();
  await roots.removeStrays((id) => sandboxes.knows(id));
  await reconcileSnapshots(context);
  forgetRestored(context.config);
}

main().catch((error: unknown) => {
  const log = createLogger("worker", "info");
  const isFinal = error instanceof ConfigError || error instanceof HostUnfit || error instanceof ClaimRefused;
  if (isFinal) log.fatal({ event: "config" }, error.message);
  else log.fatal({ err: error, cause: error instanceof SandgateError ? error.cause : undefined }, "the worker could not start");
  exitNow(isFinal ? exitConfig : exitFailure);
});
