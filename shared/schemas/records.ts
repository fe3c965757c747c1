/** What is kept of accounts, their keys and their browsers. */
import Type, { type Static } from "typebox";

const Id = Type.String({ minLength: 1, maxLength: 64 });
const Count = Type.Integer({ minimum: 0 });
const Millis = Type.Integer({ minimum: 0 });

/** Numbers that an operator has given in place of the tier's. */
export const Limits = Type.Object({
  requests_per_minute: Type.Optional(Type.Integer({ description: "Requests in any minute.", minimum: 1, maximum: 1_000_000_000 })),
  burst: Type.Optional(Type.Integer({ description: "Requests at once; a minute's worth when absent.", minimum: 1, maximum: 1_000_000_000 })),
  sandboxes: Type.Optional(Type.Integer({ description: "Sandboxes at the same time.", minimum: 0, maximum: 1_000_000 })),
});
export type Limits = Static<typeof Limits>;

export const Tier = Type.Union([Type.Literal("beta"), Type.Literal("pro"), Type.Literal("enterprise")], {
  description: "Which numbers hold where there are none of one's own.",
  takes: '"beta", "pro" or "enterprise"',
});

export const AccountRecord = Type.Object({
  id: Id,
  name: Type.String(),
  /** Absent for the account that the settings make. */
  email: Type.Optional(Type.String()),
  tier: Tier,
  limits: Type.Optional(Limits),
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
  limits: Type.Optional(Limits),
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
