/** The bodies and queries of the account calls and of the operator's calls. */
import Type from "typebox";
import { PageQuery } from "./api.ts";
import { Limits, Tier } from "./records.ts";

// What browsers take for an address in a field of the type "email"; spaces around it are cut off.
const Email = Type.String({
  description: "The address that one logs in with.",
  pattern: "^\\s*(?=\\S{3,254}\\s*$)[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9-]+(\\.[a-zA-Z0-9-]+)*\\s*$",
  maxLength: 300,
  takes: "an e-mail address of at most 254 characters, such as name@example.com",
});
const Password = Type.String({ description: "A password for the web page.", minLength: 10, maxLength: 200, takes: "a string of 10 to 200 characters" });
/** Any text that could have been a password, so that a wrong one is answered as such. */
const PasswordTry = Type.String({ description: "The password as it is now.", maxLength: 1_000, takes: "a string of at most 1000 characters" });
const DisplayName = Type.String({
  description: "A name for people.",
  pattern: "^[^\\p{Cc}\\u2028\\u2029]*$",
  maxLength: 100,
  takes: "a string of at most 100 characters without control characters",
});

export const SignUpBody = Type.Object({ email: Email, password: Password, name: Type.Optional(DisplayName) });
export const LogInBody = Type.Object({ email: Type.String({ description: "The address that one signed up with.", maxLength: 300 }), password: PasswordTry });
export const PasswordBody = Type.Object({ current_password: PasswordTry, new_password: Password });
export const KeyBody = Type.Object({ name: Type.Optional(DisplayName) });

const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const LimitsOrNull = Type.Union([Limits, Type.Null()], {
  description: "Numbers in place of the tier's; `null` takes all away.",
  takes: "an object with requests_per_minute, burst or sandboxes, or null",
});
const AccountId = Type.String({ description: "Only of this account.", minLength: 1, maxLength: 64 });

/** Numbers that are not named stay as they are; `limits: null` takes all away. */
export const AccountChange = Type.Object({
  tier: Type.Optional(Tier),
  limits: Type.Optional(LimitsOrNull),
  suspended: flag("A suspended account can do nothing; its sandboxes stay."),
  operator: flag("May use the calls under /v1/admin."),
});
export const KeyChange = Type.Object({
  tier: Type.Optional(
    Type.Union([Tier, Type.Null()], { description: "In place of the account's; `null` takes it away.", takes: '"beta", "pro", "enterprise" or null' }),
  ),
  limits: Type.Optional(LimitsOrNull),
});
export const DrainBody = Type.Object({ on: flag("`false` lets the worker take new sandboxes again. True when absent.") });

/** Items on a page of one's own keys: all of them, unless many have been revoked. */
export const ownKeysDefault = 100;
export const OwnKeysQuery = Type.Object({
  ...PageQuery.properties,
  page_size: Type.Optional(
    Type.Integer({ description: "Items on a page.", default: ownKeysDefault, minimum: 1, maximum: 100, takes: "between 1 and 100 (a whole number)" }),
  ),
});
export const AccountsQuery = Type.Object({
  ...PageQuery.properties,
  email: Type.Optional(Type.String({ description: "A part of the e-mail address.", maxLength: 300 })),
});
export const KeysQuery = Type.Object({ ...PageQuery.properties, account_id: Type.Optional(AccountId) });
const WorkerId = Type.String({ description: "Only on this worker.", minLength: 1, maxLength: 64 });
export const ImagesQuery = Type.Object({ worker_id: Type.Optional(WorkerId) });
export const SandboxesQuery = Type.Object({
  ...PageQuery.properties,
  account_id: Type.Optional(AccountId),
  worker_id: Type.Optional(WorkerId),
});
