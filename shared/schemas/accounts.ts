/** The bodies and queries of the account calls and of the operator's calls. */
import Type from "typebox";
import { PageQuery } from "./api.ts";
import { Limits, Tier } from "./records.ts";

// What browsers take for an address in a field of the type "email"; spaces around it are cut off.
const Email = Type.String({
  pattern: "^\\s*(?=\\S{3,254}\\s*$)[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9-]+(\\.[a-zA-Z0-9-]+)*\\s*$",
  maxLength: 300,
  takes: "an e-mail address of at most 254 characters, such as name@example.com",
});
const Password = Type.String({ minLength: 10, maxLength: 200, takes: "a string of 10 to 200 characters" });
/** Any text that could have been a password, so that a wrong one is answered as such. */
const PasswordTry = Type.String({ maxLength: 1_000, takes: "a string of at most 1000 characters" });
const DisplayName = Type.String({
  pattern: "^[^\\p{Cc}\\u2028\\u2029]*$",
  maxLength: 100,
  takes: "a string of at most 100 characters without control characters",
});

export const SignUpBody = Type.Object({ email: Email, password: Password, name: Type.Optional(DisplayName) });
export const LogInBody = Type.Object({ email: Type.String({ maxLength: 300 }), password: PasswordTry });
export const PasswordBody = Type.Object({ current_password: PasswordTry, new_password: Password });
export const KeyBody = Type.Object({ name: Type.Optional(DisplayName) });

const Flag = Type.Optional(Type.Boolean());
const LimitsOrNull = Type.Union([Limits, Type.Null()], { takes: "an object with requests_per_minute, burst or sandboxes, or null" });
const AccountId = Type.String({ minLength: 1, maxLength: 64 });

/** Numbers that are not named stay as they are; `limits: null` takes all away. */
export const AccountChange = Type.Object({ tier: Type.Optional(Tier), limits: Type.Optional(LimitsOrNull), suspended: Flag, operator: Flag });
export const KeyChange = Type.Object({
  tier: Type.Optional(Type.Union([Tier, Type.Null()], { takes: '"beta", "pro", "enterprise" or null' })),
  limits: Type.Optional(LimitsOrNull),
});
export const DrainBody = Type.Object({ on: Flag });

export const AccountsQuery = Type.Object({ ...PageQuery.properties, email: Type.Optional(Type.String({ maxLength: 300 })) });
export const KeysQuery = Type.Object({ ...PageQuery.properties, account_id: Type.Optional(AccountId) });
export const SandboxesQuery = Type.Object({
  ...PageQuery.properties,
  account_id: Type.Optional(AccountId),
  worker_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
});
