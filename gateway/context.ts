/** Everything that the handlers of a gateway use. Created once in `main.ts`. */
import type { AuditRecord } from "../shared/bus/audit-record.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { Base } from "./base.ts";
import type { Dashboard } from "./dashboard/files.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { Limits } from "./limit/limits.ts";
import type { Pace, Sockets } from "./live/sockets.ts";
import type { SessionTokens } from "./live/tokens.ts";
import type { AccountActivity } from "./metrics/activity.ts";

/** Live sessions. */
export interface Live {
  readonly tokens: SessionTokens;
  readonly sockets: Sockets;
  readonly pace: Pace;
}

export interface GatewayContext extends Base, Fleet, Limits, Accounts, Live {
  /** What accounts did in the last hour. */
  readonly activity: AccountActivity;
  readonly dashboard: Dashboard;
  readonly auditRecord: AuditRecord;
}
