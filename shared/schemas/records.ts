/** The stored records of accounts, keys and browser logins. */
import Type, { type Static } from "typebox";
import { CustomLimits, Tier } from "./limits.ts";
import { Isolation } from "./sandboxes.ts";

const Id = Type.String({ minLength: 1, maxLength: 64 });
const Count = Type.Integer({ minimum: 0 });
const Millis = Type.Integer({ minimum: 0 });

export const AccountRecord = Type.Object({
  id: Id,
  name: Type.String(),
  /** Absent for the account created from the settings. */
  email: Type.Optional(Type.String()),
  tier: Tier,
  limits: Type.Optional(CustomLimits),
  suspended: Type.Boolean(),
  /** What its new sandboxes get at least; absent for standard. */
  isolation: Type.Optional(Isolation),
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
  /** Replaces the account's tier. */
  tier: Type.Optional(Tier),
  limits: Type.Optional(CustomLimits),
});
export type KeyRecord = Static<typeof KeyRecord>;

/** When a key was last used, stored under its id. Separate from the key's record, so that a use never overwrites a revocation. */
export const KeyUse = Type.Object({ used_at_ms: Millis });
export type KeyUse = Static<typeof KeyUse>;

/** A user's login; stored under the SHA-256 (hex) of the e-mail address in lower case. */
export const LoginRecord = Type.Object({
  account_id: Id,
  email: Type.String(),
  /** `scrypt$N$r$p$salt$hash`, with salt and hash in base64url. */
  password: Type.String(),
  /** Incremented at every password change, which ends the sessions of older versions. */
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
