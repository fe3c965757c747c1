/** What the handlers of a worker work with. Made once in `main.ts`. */

import type { Bus } from "../shared/bus/nats.ts";
import type { PeerWatch } from "../shared/bus/presence.ts";
import type { Config } from "../shared/config.ts";
import type { StreamHub } from "../shared/stream/hub.ts";
import type { Logger } from "../shared/util/log.ts";
import type { Counters } from "./counters.ts";
import type { Images } from "./images/images.ts";
import type { Phase } from "./phase.ts";
import type { OciRuntime } from "./runtime/container/oci.ts";
import type { Reserve } from "./runtime/filesystem/reserve.ts";
import type { Host } from "./runtime/host/host.ts";
import type { Podman } from "./runtime/podman/containers.ts";
import type { PodmanImages } from "./runtime/podman/images.ts";
import type { Storages } from "./runtime/storage/storage.ts";
import type { SandboxLifecycle } from "./sandboxes/lifecycle.ts";
import type { WarmPool } from "./sandboxes/pool.ts";
import type { Sandboxes } from "./sandboxes/registry.ts";
import type { Sessions } from "./sessions/sessions.ts";
import type { LayerArchive } from "./snapshots/archive.ts";
import type { Layers } from "./snapshots/layers.ts";
import type { Snapshots } from "./snapshots/registry.ts";
import type { Replicator } from "./snapshots/replicator.ts";
import type { StallWatch } from "./stall.ts";
import type { Store } from "./store/store.ts";
import type { Urgent } from "./urgent.ts";
import type { UsageMonitor } from "./usage/monitor.ts";

export interface WorkerContext {
  readonly config: Config;
  readonly workerId: string;
  readonly host: Host;
  readonly log: Logger;
  readonly bus: Bus;
  readonly store: Store;
  readonly hub: StreamHub;
  readonly oci: OciRuntime;
  readonly sandboxes: Sandboxes;
  readonly sessions: Sessions;
  readonly lifecycle: SandboxLifecycle;
  readonly pool: WarmPool;
  readonly usage: UsageMonitor;
  readonly podman: Podman;
  readonly imageStore: PodmanImages;
  readonly images: Images;
  readonly reserve: Reserve;
  readonly storages: Storages;
  readonly layers: Layers;
  readonly snapshots: Snapshots;
  readonly archive: LayerArchive;
  readonly replicator: Replicator;
  /** Removes the layers of this worker that no snapshot and no sandbox needs. */
  readonly collectLayers: () => Promise<void>;
  readonly peers: PeerWatch;
  readonly stalls: StallWatch;
  readonly urgent: Urgent;
  readonly counters: Counters;
  readonly phase: Phase;
}
