/** What the handlers of a gateway work with. Made once in `main.ts`. */

import type { PeerWatch } from "../shared/bus/presence.ts";
import type { Config } from "../shared/config.ts";
import type { StreamHub } from "../shared/stream/hub.ts";
import type { Logger } from "../shared/util/log.ts";
import type { Semaphore } from "../shared/util/mutex.ts";
import type { Authenticator } from "./accounts/auth.ts";
import type { BrowserSessions } from "./accounts/browser-sessions.ts";
import type { LoginAttempts } from "./accounts/login-attempts.ts";
import type { Passwords } from "./accounts/passwords.ts";
import type { Records } from "./accounts/records.ts";
import type { Dashboard } from "./dashboard/files.ts";
import type { SandboxDirectory } from "./fleet/directory.ts";
import type { Dispatcher } from "./fleet/dispatch.ts";
import type { SnapshotDirectory } from "./fleet/snapshots.ts";
import type { AddressLimit } from "./limit/addresses.ts";
import type { Idempotency } from "./limit/idempotency.ts";
import type { RateLimiter } from "./limit/rates.ts";
import type { Reservations } from "./limit/reservations.ts";
import type { Pace } from "./live/pace.ts";
import type { Sockets } from "./live/sockets.ts";
import type { SessionTokens } from "./live/tokens.ts";
import type { AccountUsage } from "./metrics/usage.ts";

export interface GatewayContext {
  readonly config: Config;
  readonly log: Logger;
  readonly peers: PeerWatch;
  readonly hub: StreamHub;
  readonly workers: Dispatcher;
  readonly sandboxes: SandboxDirectory;
  readonly snapshots: SnapshotDirectory;
  readonly records: Records;
  readonly sessions: BrowserSessions;
  readonly passwords: Passwords;
  readonly authenticator: Authenticator;
  readonly loginAttempts: LoginAttempts;
  readonly rates: RateLimiter;
  /** Failed authentications, by key, cookie or password. */
  readonly failures: AddressLimit;
  /** Accounts made. */
  readonly signUps: AddressLimit;
  readonly reservations: Reservations;
  readonly idempotency: Idempotency;
  readonly usage: AccountUsage;
  /** Of live sessions. */
  readonly tokens: SessionTokens;
  readonly sockets: Sockets;
  readonly pace: Pace;
  readonly dashboard: Dashboard;
  /** Bytes that synchronous executions with large outputs may hold. */
  readonly outputMemory: Semaphore;
  readonly isConnected: () => boolean;
}
