/** Calls for operators of the installation. */
import {
  AdminAccountPage,
  AdminAccountWithKeys,
  AdminApiKey,
  AdminApiKeyPage,
  AdminNewAccount,
  AdminNewPassword,
  AdminRevokedApiKey,
  DeletedAccount,
} from "../../../shared/schemas/admin/accounts.ts";
import { AuditPage } from "../../../shared/schemas/admin/audit.ts";
import {
  AdminDeletedSandbox,
  AdminSandboxPage,
  DrainedWorker,
  ForgottenWorker,
  Images,
  MovedSandbox,
  RemovedImage,
  Workers,
} from "../../../shared/schemas/admin/fleet.ts";
import { adminAccount, adminKey, ids, pageOf, sandbox, times } from "../examples.ts";
import { largeAnswer, noSuch } from "../failures.ts";
import { made, ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Operator");
const withKeys = { ...adminAccount, api_keys: [adminKey] };
const email = "ann@example.com";
const password = "wV3kq0bS1x7yT2mPz8Qd";

export const listAccounts = operation({
  name: "adminListAccounts",
  summary: "List all accounts",
  description: "Newest first.",
  query: { email: "@example.com", page: 1 },
  success: ok("One page of accounts.", AdminAccountPage, pageOf(adminAccount)),
});

export const createAccount = operation({
  name: "adminCreateAccount",
  summary: "Create an account for somebody",
  description: "Also where signing up is closed. The server makes up the password, with which its owner logs in on the web page and can change it there.",
  body: { email, tier: "pro" },
  success: made("The account and its password.", AdminNewAccount, {
    ...adminAccount,
    email,
    name: "ann",
    tier: "pro",
    limits: { requests_per_minute: 300, burst: 300, sandboxes: 50 },
    keys: 0,
    sandboxes: 0,
    password,
  }),
  failures: { conflict: { when: "The e-mail address is taken.", message: "This e-mail address already has an account." } },
});

export const getAccount = operation({
  name: "adminGetAccount",
  summary: "Get any account",
  of: "account",
  success: ok("The account with all of its keys.", AdminAccountWithKeys, withKeys),
});

export const changeAccount = operation({
  name: "adminChangeAccount",
  summary: "Change any account",
  description: "Omitted fields keep their values. Numbers in `limits` override those of the tier; `null` removes all overrides.",
  of: "account",
  body: { tier: "pro", limits: { sandboxes: 80 } },
  success: ok("The account after the change.", AdminAccountWithKeys, {
    ...withKeys,
    tier: "pro",
    limits: { requests_per_minute: 300, burst: 300, sandboxes: 80 },
    custom_limits: { sandboxes: 80 },
  }),
  failures: {
    conflict: {
      when: "The caller would lose its own operator access.",
      message: "You cannot suspend your own account or stop being an operator; another operator can do that.",
    },
  },
});

export const resetPassword = operation({
  name: "adminResetPassword",
  summary: "Set the password of any account",
  description: "Without `password`, the server makes one up. All browsers of the account are logged out; its keys stay.",
  of: "account",
  body: {},
  success: ok("The new password.", AdminNewPassword, {
    id: ids.account,
    email,
    password,
    message: "Password changed; all browsers of this account are logged out",
  }),
  failures: {
    conflict: {
      when: "The account has no e-mail address, so nobody logs in to it.",
      message: "This account has no e-mail address, so it has no password either.",
    },
  },
});

export const deleteAccount = operation({
  name: "adminDeleteAccount",
  summary: "Delete any account",
  description:
    "With its sandboxes, snapshots, keys, logins and command logs. The account is suspended first. If something cannot be deleted, for example because a worker is away, the account stays suspended, and the call can be repeated.",
  of: "account",
  success: ok("The account is gone.", DeletedAccount, { id: ids.account, message: "Account deleted", deleted_sandboxes: 2, deleted_snapshots: 1 }),
  failures: {
    conflict: { when: "It is the caller's own account, or the first one.", message: "You cannot delete your own account; another operator can do that." },
    unavailable: {
      when: "Not everything could be deleted.",
      message: "The account is suspended, but 1 of its sandboxes and snapshots could not be deleted; try again. The first: the worker is gone or restarting",
    },
  },
});

export const listKeys = operation({
  name: "adminListKeys",
  summary: "List the keys of all accounts",
  description: "Newest first.",
  query: { account_id: ids.account, page: 1 },
  success: ok("One page of keys.", AdminApiKeyPage, pageOf(adminKey)),
});

export const changeKey = operation({
  name: "adminChangeKey",
  summary: "Change the tier or limits of a key",
  of: "key",
  body: { tier: "enterprise", limits: { requests_per_minute: 1200 } },
  success: ok("The key after the change.", AdminApiKey, {
    ...adminKey,
    tier: "enterprise",
    limits: { requests_per_minute: 1200, burst: 1200, sandboxes: 10_000 },
    custom_tier: "enterprise",
    custom_limits: { requests_per_minute: 1200 },
  }),
});

export const endKey = operation({
  name: "adminRevokeKey",
  summary: "Revoke any key",
  of: "key",
  success: ok("The key is revoked.", AdminRevokedApiKey, { id: ids.key, account_id: ids.account, message: "API key revoked", revoked_at: times.now }),
});

export const listWorkers = operation({
  name: "adminListWorkers",
  summary: "List workers",
  description: "Workers that are present, and absent ones that still have sandboxes in the directory.",
  success: ok("The fleet.", Workers, {
    data: [
      {
        id: ids.worker,
        present: true,
        draining: false,
        cordoned: false,
        sandboxes: 1,
        sandboxes_max: 200,
        memory_free_bytes: 7_516_192_768,
        disk_free_bytes: 107_374_182_400,
        load_per_cpu: 0.4,
        strong: true,
        not_enforced: [],
        lacks: [],
      },
    ],
  }),
});

export const drainWorker = operation({
  name: "adminDrainWorker",
  summary: "Cordon a worker",
  description: "The worker accepts no new sandboxes; existing ones keep running. `on: false` reverts this.",
  of: "worker",
  body: { on: true },
  success: ok("The worker is cordoned, or accepts sandboxes again.", DrainedWorker, {
    id: ids.worker,
    cordoned: true,
    message: "The worker takes no new sandboxes",
  }),
});

export const forgetWorker = operation({
  name: "adminForgetWorker",
  summary: "Forget a worker that will never come back",
  description:
    "Its sandboxes are removed from the directory and no longer count against any limit. If its machine comes back, the worker refuses to start there; another machine can take over its id.",
  of: "worker",
  success: ok("The worker is forgotten.", ForgottenWorker, { id: ids.worker, message: "Worker forgotten", forgotten_sandboxes: 3 }),
  failures: { conflict: { when: "The worker is present.", message: "This worker is there; stop it first." } },
});

export const listImages = operation({
  name: "adminListImages",
  summary: "List the images of all workers",
  description: "Grouped by worker, most recently used first.",
  query: { worker_id: ids.worker },
  success: ok("The images.", Images, {
    data: [
      {
        worker_id: ids.worker,
        id: ids.image,
        names: ["docker.io/library/alpine:3"],
        size_bytes: 8_121_344,
        last_used_at: times.began,
        in_use: false,
        default: false,
      },
    ],
  }),
  failures: { ...noSuch("worker"), ...largeAnswer },
});

export const removeImage = operation({
  name: "adminRemoveImage",
  summary: "Remove an image",
  description: "From all workers, or from one. The image is pulled again when it is next requested.",
  of: "image",
  query: { worker_id: ids.worker },
  success: ok("The image is removed.", RemovedImage, { id: ids.image, message: "Image removed", workers: [ids.worker] }),
  failures: { conflict: { when: "The image is in use, or is the default image.", message: "the image is in use" } },
});

export const listSandboxes = operation({
  name: "adminListSandboxes",
  summary: "List the sandboxes of all accounts",
  description: "In every state, newest first.",
  query: { account_id: ids.account, page: 1 },
  success: ok("One page of sandboxes.", AdminSandboxPage, pageOf({ ...sandbox, account_id: ids.account, key_id: ids.key, worker_id: ids.worker, error: null })),
});

export const deleteSandbox = operation({
  name: "adminDeleteSandbox",
  summary: "Delete any sandbox",
  of: "sandbox",
  success: ok("The sandbox is deleted.", AdminDeletedSandbox, { id: ids.sandbox, account_id: ids.account, message: "Sandbox deleted", storage_deleted: true }),
  failures: { conflict: { when: "The sandbox is still being created.", message: "the sandbox is still being created" } },
});

export const moveSandbox = operation({
  name: "adminMoveSandbox",
  summary: "Move a sandbox to another worker",
  description:
    "With its id, name, settings and files. It stands still meanwhile, with status `moving`, and calls to it are answered with 503 and `Retry-After`. Its processes go on there where both workers can do that and have the same CPU model, kernel and CRIU; otherwise they end, and `memory_reason` says why. Commands and sessions of calls end for their clients. If the call fails, the sandbox goes on where it was.",
  of: "sandbox",
  body: {},
  success: ok("The sandbox is on the other worker.", MovedSandbox, {
    id: ids.sandbox,
    account_id: ids.account,
    from: ids.worker,
    to: "wk_01k9gw2s6v8x3c5n7m1p4q0r2t",
    ended_commands: 1,
    ended_sessions: 0,
    memory_restored: true,
    memory_reason: null,
    message: "Sandbox moved",
  }),
  failures: {
    conflict: { when: "The sandbox is not running.", message: 'the sandbox is not running, it is in state "error"' },
    unavailable: { when: "No other worker can take it.", message: "no other worker has room for another sandbox" },
  },
});

export const listAudit = operation({
  name: "adminListAudit",
  summary: "List who changed what",
  description:
    "Newest first: changes of accounts, keys, limits, workers, images and other accounts' sandboxes, sign-ups, and log-ins with those that failed. Calls that are refused before they are tried, such as those beyond a rate limit, are not recorded. Entries appear within about a second of the call, and are kept for `SANDGATE_AUDIT_DAYS`.",
  query: { account_id: ids.account, limit: 20 },
  success: ok("One page of the audit record.", AuditPage, {
    data: [
      {
        sequence: 184,
        time: times.now,
        action: "adminChangeAccount",
        outcome: "ok",
        by: "key",
        operator: true,
        account_id: ids.operator,
        key_id: ids.key,
        address: "198.51.100.7",
        target: ids.account,
        target_account_id: ids.account,
        change: { tier: "pro" },
        request_id: ids.request,
      },
    ],
    next_cursor: "184",
  }),
});
