/** Sign-up, login, and what accounts see of themselves and of their API keys. */
import Type, { type Static } from "typebox";
import { component, count, flag, message, pageOf, pageQuery, text, textOrNull, time, timeOrNull } from "./fields.ts";
import { Limits, Tier } from "./limits.ts";

// The pattern browsers use for input fields of type "email". Surrounding spaces are removed.
const Email = Type.String({
  description: "The e-mail address used to log in.",
  pattern: "^\\s*(?=\\S{3,254}\\s*$)[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9-]+(\\.[a-zA-Z0-9-]+)*\\s*$",
  maxLength: 300,
  takes: "an e-mail address of at most 254 characters, such as name@example.com",
});
export const Password = Type.String({ description: "A password for the web page.", minLength: 10, maxLength: 200, takes: "a string of 10 to 200 characters" });
/** Accepts any text that could have been a password, so that a wrong one gets the answer for wrong passwords. */
const PasswordTry = Type.String({ description: "The current password.", maxLength: 1_000, takes: "a string of at most 1000 characters" });
export const DisplayName = Type.String({
  description: "A display name.",
  pattern: "^[^\\p{Cc}\\u2028\\u2029]*$",
  maxLength: 100,
  takes: "a string of at most 100 characters without control characters",
});

export const SignUpBody = Type.Object({ email: Email, password: Password, name: Type.Optional(DisplayName) });
export type SignUpBody = Static<typeof SignUpBody>;
export const LogInBody = Type.Object({ email: Type.String({ description: "The e-mail address of the account.", maxLength: 300 }), password: PasswordTry });
export type LogInBody = Static<typeof LogInBody>;
export const PasswordBody = Type.Object({ current_password: PasswordTry, new_password: Password });
export type PasswordBody = Static<typeof PasswordBody>;

/** The members shared by an account's own view and the operator's. */
export const accountMembers = {
  id: text("The account's id."),
  email: textOrNull("The e-mail address used to log in; null for the account created from the settings."),
  name: text("The name of the person or team."),
  tier: Tier,
  operator: flag("Whether the account may use the calls under /v1/admin."),
  created_at: time("When the account was created."),
  limits: Limits,
};
export const Account = component("Account", accountMembers);
export type Account = Static<typeof Account>;

export const CurrentAccount = component("CurrentAccount", {
  account: Account,
  csrf_token: Type.Optional(text("The value of the `x-csrf-token` header that browsers must send with changes.")),
  features: Type.Array(Type.String(), { description: "The optional features of this server." }),
  keys_max: count("Maximum number of active keys per account."),
});
export type CurrentAccount = Static<typeof CurrentAccount>;

export const AuthSettings = component("AuthSettings", { sign_up: flag("Whether people can sign up.") });
export type AuthSettings = Static<typeof AuthSettings>;
export const Message = component("Message", { message });
export type Message = Static<typeof Message>;
export const NewPassword = component("NewPassword", { message, csrf_token: text("The CSRF token of the new browser session.") });
export type NewPassword = Static<typeof NewPassword>;

export const KeyUsage = component("KeyUsage", {
  id: text("The key's id, or the account's id for its use through the web pages."),
  name: text("The key's name."),
  prefix: textOrNull("The key's first characters."),
  dashboard: flag("Whether this is the account's allowance for the web pages."),
  requests: Type.Object({ limit: count("Requests allowed per minute."), remaining: count("Requests left now.") }),
  sandboxes: Type.Object({ used: count("Existing sandboxes."), limit: count("Sandboxes allowed at the same time.") }),
});
export type KeyUsage = Static<typeof KeyUsage>;

export const UsageMinute = Type.Object({
  timestamp: time("Start of the minute."),
  requests: count("Number of requests."),
  refused: count("Requests refused because they exceeded the limit."),
  sandboxes: count("Highest number of sandboxes at the same time."),
});
export type UsageMinute = Static<typeof UsageMinute>;

export const AccountUsage = component(
  "Usage",
  {
    timestamp: time("When this was measured."),
    sandboxes: Type.Object({
      running: count("Running sandboxes."),
      creating: count("Sandboxes being created."),
      error: count("Sandboxes that cannot be used."),
      total: count("All sandboxes."),
    }),
    keys: Type.Array(KeyUsage),
    history: Type.Array(UsageMinute, { description: "The last hour, minute by minute." }),
  },
  "How much of its limits an account uses.",
);
export type AccountUsage = Static<typeof AccountUsage>;

export const KeyBody = Type.Object({ name: Type.Optional(DisplayName) });
export type KeyBody = Static<typeof KeyBody>;

/** Default page size when an account lists its own keys: holds all of them, unless many have been revoked. */
export const ownKeysDefault = 100;
export const OwnKeysQuery = pageQuery(ownKeysDefault);

/** The members shared by an account's own view and the operator's. */
export const keyMembers = {
  id: text("The key's id."),
  name: text("The key's name."),
  prefix: text("The first characters of the key, which help to tell keys apart."),
  created_at: time("When the key was created."),
  last_used_at: timeOrNull("When the key was last used; null if never."),
  revoked_at: timeOrNull("When the key was revoked; null while it is active."),
  tier: Tier,
  limits: Limits,
};
export const ApiKey = component("ApiKey", keyMembers, "An API key without its secret.");
export type ApiKey = Static<typeof ApiKey>;
export const ApiKeyPage = pageOf("ApiKeyPage", ApiKey, { active: count("Number of active keys of the account, on all pages.") });
export type ApiKeyPage = Static<typeof ApiKeyPage>;

const { id, name, prefix, created_at } = keyMembers;
export const NewApiKey = component("NewApiKey", { id, name, prefix, created_at, key: text("The key itself. It is shown only once.") });
export type NewApiKey = Static<typeof NewApiKey>;

export const revokedMembers = { id, message, revoked_at: time("When the key was revoked.") };
export const RevokedApiKey = component("RevokedApiKey", revokedMembers);
export type RevokedApiKey = Static<typeof RevokedApiKey>;
