/** What is kept of accounts, their keys and their browsers. */
import Type, { type Static } from "typebox";
import { CustomLimits, Tier } from "./limits.ts";

const Id = Type.String({ minLength: 1, maxLength: 64 });
const Count = Type.Integer({ minimum: 0 });
const Millis = Type.Integer({ minimum: 0 });

export const AccountRecord = Type.Object({
  id: Id,
  name: Type.String(),
  /** Absent for the account that the settings make. */
  email: Type.Optional(Type.String()),
  tier: Tier,
  limits: Type.Optional(CustomLimits),
  suspended: Type.Boolean(),
  /** May use the calls under /v1/admin. */
  operator: Type.Optional(Type.Boolean()),
  created_at_ms: Millis,
});
export type AccountRecord = Static<typeof AccountRecord>;

/** Stored under the SHA-256 (hex) of the key; the key itself is never stored. */
export const KeyRecord = Type.Object({
  id: Id,
  account_id: Id,
  name: Type.String(),
  prefix: Type.String(),
  created_at_ms: Millis,
  revoked_at_ms: Type.Optional(Millis),
  /** In place of the account's. */
  tier: Type.Optional(Tier),
  limits: Type.Optional(CustomLimits),
});
export type KeyRecord = Static<typeof KeyRecord>;

/** When a key was last used, under its id: apart from the key's record, so that a use never overwrites a revocation. */
export const KeyUse = Type.Object({ used_at_ms: Millis });
export type KeyUse = Static<typeof KeyUse>;

/** How somebody logs in; stored under the SHA-256 (hex) of the e-mail address in lower case. */
export const LoginRecord = Type.Object({
  account_id: Id,
  email: Type.String(),
  /** `scrypt$N$r$p$salt$hash`, both in base64url. */
  password: Type.String(),
  /** Grows with every change of the password; sessions of an older version are over. */
  password_version: Count,
  changed_at_ms: Millis,
});
export type LoginRecord = Static<typeof LoginRecord>;

/** A logged-in browser; stored under the SHA-256 (hex) of its cookie. */
export const SessionRecord = Type.Object({
  account_id: Id,
  /** The key of the login record. */
  login: Id,
  password_version: Count,
  csrf_token: Type.String(),
  created_at_ms: Millis,
  expires_at_ms: Millis,
});
export type SessionRecord = Static<typeof SessionRecord>;
