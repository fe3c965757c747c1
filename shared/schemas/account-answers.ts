/** The answers of the account calls and of the operator's calls. */
import Type, { type TSchema } from "typebox";
import { component, count, flag, pageOf, sandboxMembers, text, time } from "./answers.ts";
import { Limits, Tier } from "./records.ts";

const orNull = <T extends TSchema>(schema: T, description: string) => Type.Union([schema, Type.Null()], { description });
const nullableText = (description: string) => orNull(Type.String(), description);
const nullableTime = (description: string) => orNull(Type.String({ format: "date-time" }), description);
const message = text("What was done, for people.");

const LimitsAnswer = component("Limits", {
  requests_per_minute: count("Requests in any minute."),
  burst: count("Requests at once."),
  sandboxes: count("Sandboxes at the same time."),
});

const accountMembers = {
  id: text("The account's id."),
  email: nullableText("What one logs in with; null for the account that the settings make."),
  name: text("Of the person or team."),
  tier: Tier,
  operator: flag("May use the calls under /v1/admin."),
  created_at: time("When it was made."),
  limits: LimitsAnswer,
};
const AccountAnswer = component("Account", accountMembers);

export const AuthSettingsAnswer = component("AuthSettings", { sign_up: flag("Whether people can make accounts.") });
export const SessionAnswer = component("CurrentAccount", {
  account: AccountAnswer,
  csrf_token: Type.Optional(text("What the `x-csrf-token` header of changes must say; only for browsers.")),
  features: Type.Array(Type.String(), { description: "The optional parts that this server has." }),
  keys_max: count("Active keys that an account may have."),
});
export const MessageAnswer = component("Message", { message });
export const NewPasswordAnswer = component("NewPassword", { message, csrf_token: text("Of the new session.") });

const keyMembers = {
  id: text("The key's id."),
  name: text("The key's name."),
  prefix: text("The first characters of the key, to tell keys apart."),
  created_at: time("When it was made."),
  last_used_at: nullableTime("When it was last used; null for never."),
  revoked_at: nullableTime("When it was revoked; null while it is active."),
  tier: Tier,
  limits: LimitsAnswer,
};
export const ApiKeyAnswer = component("ApiKey", keyMembers);
export const ApiKeysAnswer = pageOf("ApiKeyPage", ApiKeyAnswer, { active: count("Active keys of the account, on whatever page.") });
const { id, name, prefix, created_at } = keyMembers;
export const MadeKeyAnswer = component("NewApiKey", { id, name, prefix, created_at, key: text("The key itself. Shown this once.") });
const revoked = { id, message, revoked_at: time("Since when.") };
export const RevokedKeyAnswer = component("RevokedApiKey", revoked);

const KeyUsageAnswer = component("KeyUsage", {
  id: text("Of the key, or of the account for its browsers."),
  name: text("The key's name."),
  prefix: nullableText("The key's first characters."),
  dashboard: flag("Whether this is the allowance of the web pages."),
  requests: Type.Object({ limit: count("In a minute."), remaining: count("Left now.") }),
  sandboxes: Type.Object({ used: count("There now."), limit: count("At the same time.") }),
});
export const UsageAnswer = component("Usage", {
  timestamp: time("Now."),
  sandboxes: Type.Object({ running: count("Running."), creating: count("Being made."), error: count("Broken."), total: count("All.") }),
  keys: Type.Array(KeyUsageAnswer),
  history: Type.Array(
    Type.Object({
      timestamp: time("The beginning of the minute."),
      requests: count("Calls."),
      refused: count("Calls over the limit."),
      sandboxes: count("The most at the same time."),
    }),
    { description: "The last hour, minute by minute." },
  ),
});

const customLimits = orNull(Limits, "Numbers that an operator has given.");
const adminAccount = {
  ...accountMembers,
  custom_limits: customLimits,
  suspended: flag("Can do nothing."),
  keys: count("Active keys."),
  sandboxes: count("Sandboxes in every state."),
};
const adminKey = {
  ...keyMembers,
  account_id: text("Whose it is."),
  custom_tier: orNull(Tier, "A tier that an operator has given."),
  custom_limits: customLimits,
  sandboxes: count("Sandboxes that it has made."),
};
export const AdminKeyAnswer = component("AdminApiKey", adminKey);
export const AdminKeysAnswer = pageOf("AdminApiKeyPage", AdminKeyAnswer);
export const AdminAccountsAnswer = pageOf("AdminAccountPage", component("AdminAccount", adminAccount));
export const AdminAccountAnswer = component("AdminAccountWithKeys", { ...adminAccount, api_keys: Type.Array(AdminKeyAnswer) });
export const AdminRevokedKeyAnswer = component("AdminRevokedApiKey", { ...revoked, account_id: text("Whose it was.") });

const PresentWorker = component("Worker", {
  id: text("The worker."),
  present: Type.Literal(true, { description: "It is there." }),
  draining: flag("It is stopping."),
  cordoned: flag("It takes no new sandboxes."),
  sandboxes: count("It has."),
  sandboxes_max: count("It takes."),
  memory_free_bytes: count("On its host."),
  disk_free_bytes: count("On its host."),
  load_per_cpu: Type.Number({ description: "Of its host." }),
  not_enforced: Type.Array(Type.String(), { description: "Limits that its host lacks." }),
});
const GoneWorker = component("GoneWorker", {
  id: text("The worker."),
  present: Type.Literal(false, { description: "It is gone." }),
  sandboxes: count("In the directory."),
});
export const WorkersAnswer = component("Workers", { data: Type.Array(Type.Union([PresentWorker, GoneWorker])) });
export const DrainedAnswer = component("DrainedWorker", { id: text("The worker."), cordoned: flag("It takes no new sandboxes."), message });
export const ForgottenAnswer = component("ForgottenWorker", { id: text("The worker."), message, forgotten_sandboxes: count("Taken out of the directory.") });

export const ImagesAnswer = component("Images", {
  data: Type.Array(
    component("Image", {
      worker_id: text("Where it is."),
      id: text("Its own id, which no other image can have."),
      names: Type.Array(Type.String(), { description: "Its whole names." }),
      size_bytes: count("With the layers that it shares with others."),
      last_used_at: nullableTime("When a sandbox was last made of it; null before the first."),
      in_use: flag("A sandbox or snapshot needs it."),
      default: flag("It is the one that `default` means."),
    }),
  ),
});
export const RemovedImageAnswer = component("RemovedImage", {
  id: text("The image."),
  message,
  workers: Type.Array(Type.String(), { description: "Where it was." }),
});

const AdminSandboxAnswer = component("AdminSandbox", {
  ...sandboxMembers,
  account_id: text("Whose it is."),
  key_id: text("The key, or account, that it counts against."),
  worker_id: text("Where it is."),
  error: nullableText("Why it cannot be used."),
});
export const AdminSandboxesAnswer = pageOf("AdminSandboxPage", AdminSandboxAnswer);
export const AdminDeletedSandboxAnswer = component("AdminDeletedSandbox", {
  id: text("The sandbox."),
  account_id: text("Whose it was."),
  message,
  storage_deleted: flag("The files are gone."),
});
