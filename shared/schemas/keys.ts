/** API keys as seen by their account. */
import Type, { type Static } from "typebox";
import { DisplayName } from "./accounts.ts";
import { component, count, message, pageOf, pageQuery, text, time, timeOrNull } from "./fields.ts";
import { Limits, Tier } from "./limits.ts";

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
