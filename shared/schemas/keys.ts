/** API keys as their account sees them. */
import Type, { type Static } from "typebox";
import { DisplayName } from "./accounts.ts";
import { component, count, message, text, time, timeOrNull } from "./fields.ts";
import { Limits, Tier } from "./limits.ts";
import { pageOf, pageQuery } from "./pages.ts";

export const KeyBody = Type.Object({ name: Type.Optional(DisplayName) });
export type KeyBody = Static<typeof KeyBody>;

/** Items on a page of one's own keys: all of them, unless many have been revoked. */
export const ownKeysDefault = 100;
export const OwnKeysQuery = pageQuery(ownKeysDefault);

/** What an operator sees of a key as well. */
export const keyMembers = {
  id: text("The key's id."),
  name: text("The key's name."),
  prefix: text("The first characters of the key, to tell keys apart."),
  created_at: time("When it was made."),
  last_used_at: timeOrNull("When it was last used; null for never."),
  revoked_at: timeOrNull("When it was revoked; null while it is active."),
  tier: Tier,
  limits: Limits,
};
export const ApiKey = component("ApiKey", keyMembers, "An API key without its secret.");
export type ApiKey = Static<typeof ApiKey>;
export const ApiKeyPage = pageOf("ApiKeyPage", ApiKey, { active: count("Active keys of the account, on whatever page.") });
export type ApiKeyPage = Static<typeof ApiKeyPage>;

const { id, name, prefix, created_at } = keyMembers;
export const NewApiKey = component("NewApiKey", { id, name, prefix, created_at, key: text("The key itself. Shown this once.") });
export type NewApiKey = Static<typeof NewApiKey>;

export const revokedMembers = { id, message, revoked_at: time("Since when.") };
export const RevokedApiKey = component("RevokedApiKey", revokedMembers);
export type RevokedApiKey = Static<typeof RevokedApiKey>;
