/** The foundation of all parts of a gateway: settings, log, shutdown, and the connection to the bus. */
import { gatewayAccess } from "../shared/bus/connect.ts";
import { Bus } from "../shared/bus/nats.ts";
import { PeerWatch } from "../shared/bus/presence.ts";
import { peers as names } from "../shared/bus/subjects.ts";
import type { Config } from "../shared/config.ts";
import { StreamHub } from "../shared/stream/hub.ts";
import { startTracing } from "../shared/tracing/start.ts";
import { newId } from "../shared/util/ids.ts";
import type { Logger } from "../shared/util/log.ts";
import type { Shutdown } from "../shared/util/shutdown.ts";

export type Base = Readonly<Awaited<ReturnType<typeof openBase>>>;

/** Connects to the bus, without announcing this gateway yet. */
export async function openBase(config: Config, log: Logger, shutdown: Shutdown) {
  /** The id of this process. */
  const id = newId("gateway");
  const peer = names.gateway(id);
  await startTracing({ config, log, shutdown }, "gateway", id);
  const bus = await Bus.connect(config.natsUrl, `sandgate-gateway-${id}`, log, gatewayAccess(config, peer));
  shutdown.onStop("bus", () => bus.close());
  const peers = new PeerWatch(bus, peer, log);
  return { config, log, shutdown, id, bus, peers, hub: new StreamHub(bus, peers, log, config.streamWindowsBytesMax) };
}
