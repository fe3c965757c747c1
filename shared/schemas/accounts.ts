/** Signing up and logging in, and what accounts see of themselves. */
import Type, { type Static } from "typebox";
import { component, count, flag, message, text, textOrNull, time } from "./fields.ts";
import { Limits, Tier } from "./limits.ts";

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
export const DisplayName = Type.String({
  description: "A name for people.",
  pattern: "^[^\\p{Cc}\\u2028\\u2029]*$",
  maxLength: 100,
  takes: "a string of at most 100 characters without control characters",
});

export const SignUpBody = Type.Object({ email: Email, password: Password, name: Type.Optional(DisplayName) });
export type SignUpBody = Static<typeof SignUpBody>;
export const LogInBody = Type.Object({ email: Type.String({ description: "The address that one signed up with.", maxLength: 300 }), password: PasswordTry });
export type LogInBody = Static<typeof LogInBody>;
export const PasswordBody = Type.Object({ current_password: PasswordTry, new_password: Password });
export type PasswordBody = Static<typeof PasswordBody>;

/** What an operator sees of an account as well. */
export const accountMembers = {
  id: text("The account's id."),
  email: textOrNull("What one logs in with; null for the account that the settings make."),
  name: text("Of the person or team."),
  tier: Tier,
  operator: flag("May use the calls under /v1/admin."),
  created_at: time("When it was made."),
  limits: Limits,
};
export const Account = component("Account", accountMembers);
export type Account = Static<typeof Account>;

export const CurrentAccount = component("CurrentAccount", {
  account: Account,
  csrf_token: Type.Optional(text("What the `x-csrf-token` header of changes must say; only for browsers.")),
  features: Type.Array(Type.String(), { description: "The optional parts that this server has." }),
  keys_max: count("Active keys that an account may have."),
});
export type CurrentAccount = Static<typeof CurrentAccount>;

export const AuthSettings = component("AuthSettings", { sign_up: flag("Whether people can make accounts.") });
export type AuthSettings = Static<typeof AuthSettings>;
export const Message = component("Message", { message });
export type Message = Static<typeof Message>;
export const NewPassword = component("NewPassword", { message, csrf_token: text("Of the new session.") });
export type NewPassword = Static<typeof NewPassword>;

export const KeyUsage = component("KeyUsage", {
  id: text("Of the key, or of the account for its browsers."),
  name: text("The key's name."),
  prefix: textOrNull("The key's first characters."),
  dashboard: flag("Whether this is the allowance of the web pages."),
  requests: Type.Object({ limit: count("In a minute."), remaining: count("Left now.") }),
  sandboxes: Type.Object({ used: count("There now."), limit: count("At the same time.") }),
});
export type KeyUsage = Static<typeof KeyUsage>;

export const UsageMinute = Type.Object({
  timestamp: time("The beginning of the minute."),
  requests: count("Calls."),
  refused: count("Calls over the limit."),
  sandboxes: count("The most at the same time."),
});
export type UsageMinute = Static<typeof UsageMinute>;

export const AccountUsage = component(
  "Usage",
  {
    timestamp: time("Now."),
    sandboxes: Type.Object({ running: count("Running."), creating: count("Being made."), error: count("Broken."), total: count("All.") }),
    keys: Type.Array(KeyUsage),
    history: Type.Array(UsageMinute, { description: "The last hour, minute by minute." }),
  },
  "What an account uses of its limits.",
);
export type AccountUsage = Static<typeof AccountUsage>;
