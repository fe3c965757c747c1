/** The operator's calls for accounts and keys. */
import Type, { type Static } from "typebox";
import { accountMembers, keyMembers, Password, revokedMembers, SignUpBody } from "../accounts.ts";
import { component, count, flag, idOf, message, oneOf, orNull, PageQuery, pageOf, text } from "../fields.ts";
import { CustomLimits, Tier } from "../limits.ts";
import { isolations } from "../sandboxes.ts";

const change = (description: string) => Type.Optional(flag(description));
const LimitsOrNull = orNull(CustomLimits, {
  description: "Custom limits, which replace those of the tier; `null` removes all of them.",
  takes: "an object with requests_per_minute, burst or sandboxes, or null",
});

const leastIsolation = oneOf(isolations, {
  description: "What new sandboxes of the account get at least; a call may ask for more, never for less.",
  takes: '"standard" or "strong"',
});

/** Limits that are not named stay unchanged; `limits: null` removes all custom limits. */
export const AccountChange = Type.Object({
  tier: Type.Optional(Tier),
  limits: Type.Optional(LimitsOrNull),
  suspended: change("Whether the account is suspended. It can then do nothing, but its sandboxes are kept."),
  operator: change("Whether the account may use the calls under /v1/admin."),
  isolation: Type.Optional(leastIsolation),
});
export type AccountChange = Static<typeof AccountChange>;

const { email, name } = SignUpBody.properties;
const { tier, operator, isolation } = AccountChange.properties;
export const NewAccountBody = Type.Object({ email, name, tier, limits: Type.Optional(CustomLimits), operator, isolation });
export type NewAccountBody = Static<typeof NewAccountBody>;

/** Without a password, the server makes one up. */
export const PasswordReset = Type.Object({ password: Type.Optional(Password) });
export type PasswordReset = Static<typeof PasswordReset>;
export const KeyChange = Type.Object({
  tier: Type.Optional(
    orNull(Tier, { description: "The key's own tier, which replaces the account's; `null` removes it.", takes: '"beta", "pro", "enterprise" or null' }),
  ),
  limits: Type.Optional(LimitsOrNull),
});
export type KeyChange = Static<typeof KeyChange>;

export const AccountsQuery = Type.Object({
  ...PageQuery.properties,
  email: Type.Optional(Type.String({ description: "Part of the e-mail address.", maxLength: 300 })),
});
export type AccountsQuery = Static<typeof AccountsQuery>;
export const KeysQuery = Type.Object({ ...PageQuery.properties, account_id: Type.Optional(idOf("Only keys of this account.")) });
export type KeysQuery = Static<typeof KeysQuery>;

const custom_limits = orNull(CustomLimits, { description: "Limits set by an operator; null if none." });

export const AdminApiKey = component("AdminApiKey", {
  ...keyMembers,
  account_id: text("The account that the key belongs to."),
  custom_tier: orNull(Tier, { description: "The key's tier if set by an operator, else null." }),
  custom_limits,
  sandboxes: count("Number of sandboxes that count against the key."),
});
export type AdminApiKey = Static<typeof AdminApiKey>;
export const AdminApiKeyPage = pageOf("AdminApiKeyPage", AdminApiKey);
export type AdminApiKeyPage = Static<typeof AdminApiKeyPage>;
export const AdminRevokedApiKey = component("AdminRevokedApiKey", { ...revokedMembers, account_id: text("The account that the key belonged to.") });
export type AdminRevokedApiKey = Static<typeof AdminRevokedApiKey>;

const adminAccountMembers = {
  ...accountMembers,
  custom_limits,
  suspended: flag("Whether the account is suspended and can do nothing."),
  isolation: leastIsolation,
  keys: count("Number of active keys."),
  sandboxes: count("Number of sandboxes in any state."),
};
export const AdminAccount = component("AdminAccount", adminAccountMembers);
export type AdminAccount = Static<typeof AdminAccount>;
export const AdminAccountPage = pageOf("AdminAccountPage", AdminAccount);
export type AdminAccountPage = Static<typeof AdminAccountPage>;
export const AdminAccountWithKeys = component("AdminAccountWithKeys", { ...adminAccountMembers, api_keys: Type.Array(AdminApiKey) });
export type AdminAccountWithKeys = Static<typeof AdminAccountWithKeys>;

export const AdminNewAccount = component("AdminNewAccount", {
  ...adminAccountMembers,
  password: text("The password, which the server has made up; only this answer shows it."),
});
export type AdminNewAccount = Static<typeof AdminNewAccount>;
export const AdminNewPassword = component("AdminNewPassword", {
  id: text("The account."),
  email: text("The address to log in with."),
  password: Type.Optional(text("The new password, if the server has made it up; only this answer shows it.")),
  message,
});
export type AdminNewPassword = Static<typeof AdminNewPassword>;
export const DeletedAccount = component("DeletedAccount", {
  id: text("The account."),
  message,
  deleted_sandboxes: count("Number of sandboxes deleted with it."),
  deleted_snapshots: count("Number of snapshots deleted with it."),
});
export type DeletedAccount = Static<typeof DeletedAccount>;
