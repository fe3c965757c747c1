/** Calls and WebSockets end with what has let them in: the key, the account, the log-in. */

import { SandgateError } from "../../shared/errors.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type Authenticator, loggedOut, suspended } from "../accounts/auth.ts";
import type { Records } from "../accounts/records.ts";
import type { Caller } from "../call.ts";
import type { Sockets } from "../live/sockets.ts";
import type { Admission } from "./admission.ts";

/** A log-in that has expired tells nobody, so it is looked for this often. */
const lookMs = 1_000;

/** From now on; until the process ends. */
export function endWithTheirRights(records: Records, authenticator: Authenticator, admission: Admission, sockets: Sockets, log: Logger): void {
  const { accounts, keys, sessions, logins } = records;
  const cancel = (isMeant: (caller: Caller) => boolean, reason: SandgateError): void => {
    for (const held of [admission, sockets]) held.cancel(isMeant, reason);
  };
  keys.onChange((_hash, key) => {
    if (key?.revoked_at_ms !== undefined) cancel((caller) => caller.key?.id === key.id, new SandgateError("unauthorized", "This API key has been revoked."));
  });
  accounts.onChange((_id, account) => {
    if (account?.suspended) cancel((caller) => caller.account.id === account.id, suspended());
  });
  const reason = loggedOut();
  const endLoggedOut = (): void => {
    sockets.cancel((caller) => authenticator.hasLoggedOut(caller), reason);
    // Calls about the log-in itself go on: the one that logs out is among them.
    admission.cancel((caller, { access }) => access !== "person" && authenticator.hasLoggedOut(caller), reason);
  };
  sessions.onChange((_id, session) => session === undefined && endLoggedOut());
  logins.onChange(endLoggedOut);
  every(lookMs, log, "log-ins that have expired could not be looked for", endLoggedOut).unref();
}
