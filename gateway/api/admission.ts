/** Bounds the calls in progress on a gateway, and cancels those whose key or account has lost its access. */
import { SandgateError } from "../../shared/errors.ts";
import { errors } from "../../shared/known-errors.ts";
import { every } from "../../shared/util/background.ts";
import { loggedOut, suspended } from "../accounts/auth.ts";
import type { Caller } from "../call.ts";
import type { GatewayContext } from "../context.ts";
import type { Exchange } from "../http/exchange.ts";
import type { CallRoute } from "./route.ts";

interface Held {
  readonly route: CallRoute;
  readonly caller: Caller | undefined;
}

export class Admission {
  readonly #max: number;
  /** Calls that are waiting for something. All others finish synchronously and need no tracking. */
  readonly #waiting = new Map<Exchange, Held>();
  #draining = false;

  constructor(max: number) {
    this.#max = max;
  }

  get inProgress(): number {
    return this.#waiting.size;
  }

  /** Refuses every new call from now on. */
  drain(): void {
    this.#draining = true;
  }

  /** @throws {SandgateError} `unavailable` when no more calls are accepted. */
  refuseIfFull(): void {
    if (this.#draining) throw errors.stopping("gateway");
    if (this.#waiting.size >= this.#max) throw new SandgateError("unavailable", "the gateway is busy");
  }

  /** Counts a call until it is over. */
  hold(exchange: Exchange, route: CallRoute, caller: Caller | undefined): void {
    this.#waiting.set(exchange, { route, caller });
    exchange.onDone(() => this.#waiting.delete(exchange));
  }

  /** Cancels the matching calls and sends their clients the reason. */
  cancel(isMeant: (caller: Caller, route: CallRoute) => boolean, reason: SandgateError): void {
    for (const [exchange, { route, caller }] of [...this.#waiting]) if (caller && isMeant(caller, route)) exchange.cancel(reason);
  }
}

/** Expired logins raise no event, so they are looked for at this interval. */
const lookMs = 1_000;

/** Ends calls and WebSockets when the key, account or login that authorized them loses its access, for as long as the process lasts. */
export function endWithTheirRights({ records, authenticator, sockets, log }: GatewayContext, admission: Admission): void {
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
