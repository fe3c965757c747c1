/** Ends calls and WebSockets when the key, account or login that authorized them loses its access. */

import { SandgateError } from "../../shared/errors.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";
import { type Authenticator, loggedOut, suspended } from "../accounts/auth.ts";
import type { Records } from "../accounts/records.ts";
import type { Caller } from "../call.ts";
import type { Sockets } from "../live/sockets.ts";
import type { Admission } from "./admission.ts";

/** Expired logins raise no event, so they are looked for at this interval. */
const lookMs = 1_000;

/** Starts watching. There is no stop: it lasts as long as the process. */
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
    // Calls about the login itself continue: the call that logs out is one of them.
    admission.cancel((caller, { access }) => access !== "person" && authenticator.hasLoggedOut(caller), reason);
  };
  sessions.onChange((_id, session) => session === undefined && endLoggedOut());
  logins.onChange(endLoggedOut);
  every(lookMs, log, "could not look for expired logins", endLoggedOut).unref();
}
