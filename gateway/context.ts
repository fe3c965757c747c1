/** What the handlers of a gateway work with. Made once in `main.ts`. */
import type { Config } from "../shared/config.ts";
import type { Logger } from "../shared/log.ts";
import type { Semaphore } from "../shared/mutex.ts";
import type { PeerWatch } from "../shared/presence.ts";
import type { StreamHub } from "../shared/stream/hub.ts";
import type { SandboxDirectory } from "./directory.ts";
import type { Dispatcher } from "./dispatch.ts";

export interface GatewayContext {
  readonly config: Config;
  readonly log: Logger;
  readonly peers: PeerWatch;
  readonly hub: StreamHub;
  readonly workers: Dispatcher;
  readonly sandboxes: SandboxDirectory;
  /** Bytes that synchronous executions with large outputs may hold. */
  readonly outputMemory: Semaphore;
  readonly isConnected: () => boolean;
}
