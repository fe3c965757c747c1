/** Starts a gateway: connects, loads accounts, keys and the directory into memory, then listens. */
import { flushCompileCache } from "node:module";
import { AuditRecord } from "../shared/bus/audit-record.ts";
import { watchPulse } from "../shared/bus/pulse.ts";
import { ConfigError, loadConfig, takeServiceVariables } from "../shared/config.ts";
import { watchUncaught } from "../shared/util/background.ts";
import { createLogger } from "../shared/util/log.ts";
import { ServiceManager } from "../shared/util/service-manager.ts";
import { settleMemory } from "../shared/util/settle.ts";
import { Shutdown, stopOnRequest } from "../shared/util/shutdown.ts";
import { pause } from "../shared/waiting.ts";
import { openAccounts } from "./accounts/accounts.ts";
import { RevokedKeys } from "./accounts/revoked-keys.ts";
import { servePeers } from "./api/peers.ts";
import { serve } from "./api/serve.ts";
import { openBase } from "./base.ts";
import type { GatewayContext } from "./context.ts";
import { loadDashboard } from "./dashboard/files.ts";
import { openFleet } from "./fleet/fleet.ts";
import { startSweeping } from "./fleet/sweep.ts";
import { openLimits } from "./limit/limits.ts";
import { Pace, Sockets } from "./live/sockets.ts";
import { SessionTokens } from "./live/tokens.ts";
import { AccountActivity } from "./metrics/activity.ts";

/** EX_CONFIG of sysexits.h: a restart would fail in the same way. */
const exitConfig = 78;
const meetMs = 200;

async function main(): Promise<void> {
  const manager = new ServiceManager(takeServiceVariables());
  const config = loadConfig();
  const log = createLogger("gateway", config.logLevel);
  watchUncaught(log, (code) => process.exit(code));
  const shutdown = new Shutdown(log);
  stopOnRequest(shutdown, (code) => process.exit(code));

  const loading = loadDashboard();
  // The `await` below reports a failure.
  loading.catch(() => {});
  const base = await openBase(config, log, shutdown);
  const auditRecord = await AuditRecord.open(base.bus, { days: config.auditDays }, log);
  shutdown.onStop("audit", () => auditRecord.stop());
  const fleet = await openFleet(base);
  const limits = await openLimits(base, fleet.sandboxes);
  shutdown.onStop("pulse", await watchPulse(base.bus, base.id, log));
  const accounts = await openAccounts(base);
  const context: GatewayContext = {
    ...base,
    ...fleet,
    ...limits,
    ...accounts,
    tokens: new SessionTokens(base.bus, base.id),
    sockets: new Sockets(config.sessionSocketsMax, log),
    pace: new Pace(),
    activity: new AccountActivity(fleet.sandboxes, log),
    dashboard: await loading,
    auditRecord,
  };
  await join(context);
  tidyUp(context);
  const port = await serve(context);
  log.info({ event: "ready", port, host: config.host, gateway: base.peers.peer }, "the gateway is ready");
  await manager.ready(shutdown, log);
  // Saves the compiled code for the next start, even if this process is killed.
  flushCompileCache();
  settleMemory();
}

/** Announces this gateway and meets the others, which answer the first heartbeat at once. They must be known before this one counts calls. */
async function join(context: GatewayContext): Promise<void> {
  const { bus, peers, ownership, shutdown } = context;
  servePeers(bus, context);
  peers.start(() => ({ gateway: true }));
  shutdown.onStop("presence", () => {
    ownership.leave();
    peers.leave();
  });
  await bus.connection.flush();
  await pause(meetMs);
}

/** Clean-up tasks, each done by one gateway for all. */
function tidyUp({ config, log, shutdown, ownership, records, moves, storage: { sandboxes, snapshots, layers } }: GatewayContext): void {
  const isMine = (work: string) => () => ownership.ownerOf(work) === ownership.self;
  new RevokedKeys(records, config.revokedKeysMs, isMine("revoked-keys"), log).start();
  const buckets = [sandboxes, snapshots, records.accounts, records.keys, records.keyUse, records.logins];
  shutdown.onStop("moves", moves.watch(isMine("moves")));
  shutdown.onStop("sweep", startSweeping({ isMine: isMine("sweep"), layers, log, snapshots, buckets }));
}

main().catch((error: unknown) => {
  const log = createLogger("gateway", "info");
  if (error instanceof ConfigError) log.fatal({ event: "config" }, error.message);
  else log.fatal({ err: error }, "the gateway could not start");
  process.exit(error instanceof ConfigError ? exitConfig : 1);
});
