/** Everything that the handlers of a gateway use. Created once in `main.ts`. */
import type { Accounts } from "./accounts/accounts.ts";
import type { Base } from "./base.ts";
import type { Dashboard } from "./dashboard/files.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { Limits } from "./limit/limits.ts";
import type { Pace } from "./live/pace.ts";
import type { Sockets } from "./live/sockets.ts";
import type { SessionTokens } from "./live/tokens.ts";
import type { AccountActivity, AccountUsage } from "./metrics/activity.ts";

/** Live sessions. */
export interface Live {
  readonly tokens: SessionTokens;
  readonly sockets: Sockets;
  readonly pace: Pace;
}

/** What accounts did in the last hour. */
export interface Usage {
  readonly activity: AccountActivity;
  readonly usage: AccountUsage;
}

export interface GatewayContext extends Base, Fleet, Limits, Accounts, Live, Usage {
  readonly dashboard: Dashboard;
}
