/** Calls of the web pages, and calls about the caller's own account. */
import { AccountUsage, ApiKeyPage, AuthSettings, CurrentAccount, Message, NewApiKey, NewPassword, RevokedApiKey } from "../../../shared/schemas/accounts.ts";
import { account, ids, key, session, times } from "../examples.ts";
import { guessing } from "../failures.ts";
import { made, ok, operationsOf } from "../operation.ts";

const browser = operationsOf("Browser");
const ofAccount = operationsOf("Account");
const password = "correct horse battery staple";

export const settings = browser({
  name: "getAuthSettings",
  summary: "Get the log-in settings",
  success: ok("Whether people can sign up.", AuthSettings, { sign_up: true }),
});

export const signUp = browser({
  name: "signUp",
  summary: "Create an account",
  description: "The answer is the same whether or not the address already has an account. An existing account is left unchanged. Log in afterwards.",
  body: { email: account.email, password, name: account.name },
  success: ok("The address has an account.", Message, {
    message: "If this e-mail address is new here, its account is made: log in with the password that you chose",
  }),
  failures: {
    ...guessing,
    forbidden: {
      when: "Signing up is closed, or the call comes from a page of another site.",
      message: "Signing up is closed on this server. Ask its operator for an account.",
      reason: "sign_up_closed",
    },
  },
});

export const logIn = browser({
  name: "logIn",
  summary: "Log in",
  description:
    "The answer sets the session cookie. Calls with the cookie must send the account's `id` in the header `x-sandgate-account`; those that change something must also send the `csrf_token` in `x-csrf-token`. An earlier session of the browser ends.",
  body: { email: account.email, password },
  success: ok("Logged in.", CurrentAccount, session),
  failures: {
    ...guessing,
    unauthorized: { when: "The address or the password is wrong. The answer does not say which.", message: "Wrong e-mail or password." },
    forbidden: { when: "The account is suspended, or the call comes from a page of another site.", message: "This account is suspended.", reason: "suspended" },
  },
});

export const logOut = browser({
  name: "logOut",
  summary: "Log out",
  success: ok("The session is over.", Message, { message: "Logged out" }),
});

export const changePassword = browser({
  name: "changePassword",
  summary: "Change the password",
  description: "All other sessions of the account end. API keys keep working.",
  body: { current_password: password, new_password: "a better horse battery staple" },
  success: ok("The password is changed.", NewPassword, {
    message: "Password changed; all other sessions of this account have ended",
    csrf_token: "Yc4m2Rk8Vb1tHx6pLd9sWq3fJz7nGe5u",
  }),
  failures: {
    ...guessing,
    forbidden: {
      when: "The current password is wrong, or the call does not come from a logged-in browser.",
      message: "The current password is wrong.",
      reason: "wrong_password",
    },
  },
});

export const get = ofAccount({
  name: "getAccount",
  summary: "Get the account",
  success: ok("The caller's account and its limits. A browser also receives its `csrf_token`.", CurrentAccount, session),
});

export const listKeys = ofAccount({
  name: "listApiKeys",
  summary: "List API keys",
  description: "Newest first. Includes revoked keys until they are removed, by default 30 days later. Only hashes of the keys are stored.",
  query: { page: 1, page_size: 50 },
  success: ok("One page of keys.", ApiKeyPage, { data: [key], pagination: { page: 1, page_size: 100, total_items: 1, total_pages: 1 }, active: 1 }),
});

export const makeKey = ofAccount({
  name: "createApiKey",
  summary: "Create an API key",
  description: "The key is shown only in this answer. Requires a login on the web page.",
  body: { name: key.name },
  success: made("The new key.", NewApiKey, {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    created_at: key.created_at,
    key: "sg_Xk2b9QwT7vR4nM8sLd1pHf6jZc3yGa5eUi0oBx2kWq9rVt4m",
  }),
  failures: {
    rate_limited: {
      when: "The account has created 200 keys within an hour.",
      message: "an account can make at most 200 keys an hour; try again in 18 seconds",
    },
    conflict: { when: "The account has reached its limit of active keys.", message: "An account can have at most 5 active keys; revoke one first." },
  },
});

export const endKey = ofAccount({
  name: "revokeApiKey",
  summary: "Revoke an API key",
  description: "The key stops working everywhere at once, and its calls in progress end. Requires a login on the web page.",
  of: "key",
  success: ok("The key is revoked.", RevokedApiKey, { id: ids.key, message: "API key revoked", revoked_at: times.now }),
});

export const usage = ofAccount({
  name: "getUsage",
  summary: "Get usage and remaining limits",
  success: ok("The current usage, and the last hour by minute.", AccountUsage, {
    timestamp: times.now,
    sandboxes: { running: 1, creating: 0, error: 0, total: 1 },
    keys: [
      {
        id: ids.key,
        name: key.name,
        prefix: key.prefix,
        dashboard: false,
        requests: { limit: 60, remaining: 58 },
        sandboxes: { used: 1, limit: 10 },
      },
    ],
    history: [{ timestamp: times.made, requests: 2, refused: 0, sandboxes: 1 }],
  }),
});
