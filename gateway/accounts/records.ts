/** Everything about accounts that is kept in JetStream, whole in the memory of every gateway. */

import { BucketMirror } from "../../shared/bus/mirror.ts";
import type { Bus } from "../../shared/bus/nats.ts";
import { buckets } from "../../shared/bus/subjects.ts";
import type { Config } from "../../shared/config.ts";
import { AccountRecord, KeyRecord, KeyUse, LoginRecord, SessionRecord } from "../../shared/schemas/records.ts";
import { checker } from "../../shared/schemas/validate.ts";
import type { Logger } from "../../shared/util/log.ts";

export interface Records {
  /** By account id. */
  readonly accounts: BucketMirror<AccountRecord>;
  /** By the SHA-256 of the key. */
  readonly keys: BucketMirror<KeyRecord>;
  /** By key id. */
  readonly keyUse: BucketMirror<KeyUse>;
  /** By the SHA-256 of the e-mail address in lower case. */
  readonly logins: BucketMirror<LoginRecord>;
  /** By the SHA-256 of the cookie. */
  readonly sessions: BucketMirror<SessionRecord>;
  stop(): void;
}

export async function openRecords(bus: Bus, config: Config, log: Logger): Promise<Records> {
  const accounts = await BucketMirror.watch(bus, buckets.accounts, checker(AccountRecord), log);
  const keys = await BucketMirror.watch(bus, buckets.keys, checker(KeyRecord), log);
  const keyUse = await BucketMirror.watch(bus, buckets.keyUse, checker(KeyUse), log);
  const logins = await BucketMirror.watch(bus, buckets.logins, checker(LoginRecord), log);
  const sessions = await BucketMirror.watch(bus, buckets.sessions, checker(SessionRecord), log, { ttlMs: config.sessionMs });
  const all = [accounts, keys, keyUse, logins, sessions];
  return { accounts, keys, keyUse, logins, sessions, stop: () => all.forEach((mirror) => mirror.stop()) };
}
