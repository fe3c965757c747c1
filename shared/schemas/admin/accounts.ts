/** The operator's calls about accounts and keys. */
import Type, { type Static } from "typebox";
import { accountMembers } from "../accounts.ts";
import { component, count, flag, idOf, orNull, text } from "../fields.ts";
import { keyMembers, revokedMembers } from "../keys.ts";
import { CustomLimits, Tier } from "../limits.ts";
import { PageQuery, pageOf } from "../pages.ts";

const change = (description: string) => Type.Optional(flag(description));
const LimitsOrNull = orNull(CustomLimits, {
  description: "Numbers in place of the tier's; `null` takes all away.",
  takes: "an object with requests_per_minute, burst or sandboxes, or null",
});

/** Numbers that are not named stay as they are; `limits: null` takes all away. */
export const AccountChange = Type.Object({
  tier: Type.Optional(Tier),
  limits: Type.Optional(LimitsOrNull),
  suspended: change("A suspended account can do nothing; its sandboxes stay."),
  operator: change("May use the calls under /v1/admin."),
});
export type AccountChange = Static<typeof AccountChange>;
export const KeyChange = Type.Object({
  tier: Type.Optional(orNull(Tier, { description: "In place of the account's; `null` takes it away.", takes: '"beta", "pro", "enterprise" or null' })),
  limits: Type.Optional(LimitsOrNull),
});
export type KeyChange = Static<typeof KeyChange>;

export const AccountsQuery = Type.Object({
  ...PageQuery.properties,
  email: Type.Optional(Type.String({ description: "A part of the e-mail address.", maxLength: 300 })),
});
export type AccountsQuery = Static<typeof AccountsQuery>;
export const KeysQuery = Type.Object({ ...PageQuery.properties, account_id: Type.Optional(idOf("Only of this account.")) });
export type KeysQuery = Static<typeof KeysQuery>;

const custom_limits = orNull(CustomLimits, { description: "Numbers that an operator has given." });

export const AdminApiKey = component("AdminApiKey", {
  ...keyMembers,
  account_id: text("Whose it is."),
  custom_tier: orNull(Tier, { description: "A tier that an operator has given." }),
  custom_limits,
  sandboxes: count("Sandboxes that it has made."),
});
export type AdminApiKey = Static<typeof AdminApiKey>;
export const AdminApiKeyPage = pageOf("AdminApiKeyPage", AdminApiKey);
export type AdminApiKeyPage = Static<typeof AdminApiKeyPage>;
export const AdminRevokedApiKey = component("AdminRevokedApiKey", { ...revokedMembers, account_id: text("Whose it was.") });
export type AdminRevokedApiKey = Static<typeof AdminRevokedApiKey>;

const adminAccountMembers = {
  ...accountMembers,
  custom_limits,
  suspended: flag("Can do nothing."),
  keys: count("Active keys."),
  sandboxes: count("Sandboxes in every state."),
};
export const AdminAccount = component("AdminAccount", adminAccountMembers);
export type AdminAccount = Static<typeof AdminAccount>;
export const AdminAccountPage = pageOf("AdminAccountPage", AdminAccount);
export type AdminAccountPage = Static<typeof AdminAccountPage>;
export const AdminAccountWithKeys = component("AdminAccountWithKeys", { ...adminAccountMembers, api_keys: Type.Array(AdminApiKey) });
export type AdminAccountWithKeys = Static<typeof AdminAccountWithKeys>;
