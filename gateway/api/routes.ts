/** The route table: the only declaration of each path. Method, path, input, docs, handler, access. */
import { KeyBody, LogInBody, OwnKeysQuery, PasswordBody, SignUpBody } from "../../shared/schemas/accounts.ts";
import { AccountChange, AccountsQuery, KeyChange, KeysQuery, NewAccountBody, PasswordReset } from "../../shared/schemas/admin/accounts.ts";
import { AuditQuery } from "../../shared/schemas/admin/audit.ts";
import { DrainBody, ImagesQuery, MoveBody, SandboxesQuery } from "../../shared/schemas/admin/fleet.ts";
import { ExecuteAsyncBody, ExecuteBody } from "../../shared/schemas/executions.ts";
import { PageQuery } from "../../shared/schemas/fields.ts";
import { DownloadQuery, StatQuery, UploadQuery } from "../../shared/schemas/files.ts";
import { CreateBody, DeleteBody, FindQuery } from "../../shared/schemas/sandboxes.ts";
import { SessionQuery, SessionTokenBody } from "../../shared/schemas/sessions.ts";
import { CloneBody, ForkBody, RestoreBody, SnapshotBody } from "../../shared/schemas/snapshots.ts";
import { LogsQuery, StatusQuery } from "../../shared/schemas/usage.ts";
import * as accounts from "../docs/operations/accounts.ts";
import * as admin from "../docs/operations/admin.ts";
import * as executions from "../docs/operations/executions.ts";
import * as files from "../docs/operations/files.ts";
import * as operations from "../docs/operations/operations.ts";
import * as sandboxes from "../docs/operations/sandboxes.ts";
import * as sessions from "../docs/operations/sessions.ts";
import * as snapshots from "../docs/operations/snapshots.ts";
import { endKey, getAccount, getUsage, listKeys, makeKey } from "../handlers/account.ts";
import { changeAccount, createAccount, deleteAccount, getAnyAccount, listAccounts, resetPassword } from "../handlers/admin/accounts.ts";
import { listAudit } from "../handlers/admin/audit.ts";
import { listImages, removeImage } from "../handlers/admin/images.ts";
import { changeKey, endAnyKey, listAllKeys } from "../handlers/admin/keys.ts";
import { moveSandbox } from "../handlers/admin/move.ts";
import { deleteAnySandbox, listAllSandboxes } from "../handlers/admin/sandboxes.ts";
import { drainWorker, forgetWorker, listWorkers } from "../handlers/admin/workers.ts";
import { authSettings, changePassword, logIn, logOut, signUp } from "../handlers/auth.ts";
import { cloneSandbox } from "../handlers/clone.ts";
import { execute, executeAsync } from "../handlers/execute.ts";
import { download, stat, upload } from "../handlers/files.ts";
import { forkSandbox } from "../handlers/fork.ts";
import { asset, fileOf, health, page, pagePaths, readiness } from "../handlers/pages.ts";
import { restoreSnapshot } from "../handlers/restore.ts";
import { createSandbox, deleteAllSandboxes, deleteSandbox, findSandboxes, getSandbox, listSandboxes } from "../handlers/sandboxes.ts";
import { listSessions, makeSessionToken, openSession } from "../handlers/sessions.ts";
import { createSnapshot, deleteAllSnapshots, deleteSnapshot, getSnapshot, listSnapshots } from "../handlers/snapshots.ts";
import { sandboxLogs, sandboxStatus } from "../handlers/usage.ts";
import { bodyOf, fileWith, forAnyone, nothing, type OpenRoute, queryOf, type Route, route } from "./route.ts";

/** Lookups that a client needs before the actual call. With their own allowance, a command of two calls counts as one request. */
const toLookUp = { allowance: "lookups" } as const;
const forPeople = { access: "person", allowance: "pages" } as const;
const forAccounts = { access: "account", allowance: "pages" } as const;
const forOperators = { access: "operator", allowance: "pages" } as const;

export const routes: readonly Route[] = [
  route("POST", "/v1/sandboxes/create", bodyOf(CreateBody), sandboxes.create, createSandbox),
  route("GET", "/v1/sandboxes/list", queryOf(PageQuery), sandboxes.list, listSandboxes),
  route("GET", "/v1/sandboxes/find", queryOf(FindQuery), sandboxes.find, findSandboxes, toLookUp),
  route("GET", "/v1/sandboxes/logs", queryOf(LogsQuery), sandboxes.logs, sandboxLogs),
  route("DELETE", "/v1/sandboxes/delete-all", nothing, sandboxes.removeAll, deleteAllSandboxes),
  route("GET", "/v1/sandboxes/:id", nothing, sandboxes.get, getSandbox),
  route("DELETE", "/v1/sandboxes/:id/delete", bodyOf(DeleteBody), sandboxes.remove, deleteSandbox),
  route("GET", "/v1/sandboxes/:id/status", queryOf(StatusQuery), sandboxes.status, sandboxStatus),
  route("POST", "/v1/sandboxes/:id/execute", bodyOf(ExecuteBody), executions.execute, execute),
  route("POST", "/v1/sandboxes/:id/execute_async", bodyOf(ExecuteAsyncBody), executions.executeAsync, executeAsync),
  route("GET", "/v1/sandboxes/:id/session", queryOf(SessionQuery), sessions.open, openSession, { socket: true }),
  route("POST", "/v1/sandboxes/:id/session-token", bodyOf(SessionTokenBody), sessions.token, makeSessionToken),
  route("GET", "/v1/sandboxes/:id/sessions", nothing, sessions.list, listSessions),
  route("POST", "/v1/sandboxes/:id/upload", fileWith(UploadQuery), files.upload, upload),
  route("GET", "/v1/sandboxes/:id/download", queryOf(DownloadQuery), files.download, download),
  route("GET", "/v1/sandboxes/:id/stat", queryOf(StatQuery), files.stat, stat, toLookUp),
  route("POST", "/v1/sandboxes/:id/snapshot", bodyOf(SnapshotBody), snapshots.take, createSnapshot),
  route("POST", "/v1/sandboxes/:id/clone", bodyOf(CloneBody), snapshots.clone, cloneSandbox),
  route("POST", "/v1/sandboxes/:id/fork", bodyOf(ForkBody), snapshots.fork, forkSandbox),
  route("GET", "/v1/snapshots/list", queryOf(PageQuery), snapshots.list, listSnapshots),
  route("DELETE", "/v1/snapshots/delete-all", nothing, snapshots.removeAll, deleteAllSnapshots),
  route("GET", "/v1/snapshots/:id", nothing, snapshots.get, getSnapshot),
  route("POST", "/v1/snapshots/:id/restore", bodyOf(RestoreBody), snapshots.restore, restoreSnapshot),
  route("DELETE", "/v1/snapshots/:id", nothing, snapshots.remove, deleteSnapshot),
  forAnyone("GET", "/v1/auth/settings", nothing, accounts.settings, authSettings),
  forAnyone("POST", "/v1/auth/signup", bodyOf(SignUpBody), accounts.signUp, signUp),
  forAnyone("POST", "/v1/auth/login", bodyOf(LogInBody), accounts.logIn, logIn),
  route("POST", "/v1/auth/logout", nothing, accounts.logOut, logOut, forPeople),
  route("GET", "/v1/account", nothing, accounts.get, getAccount, { ...forAccounts, asksWho: true }),
  route("POST", "/v1/account/password", bodyOf(PasswordBody), accounts.changePassword, changePassword, forPeople),
  route("GET", "/v1/account/keys", queryOf(OwnKeysQuery), accounts.listKeys, listKeys, forAccounts),
  route("POST", "/v1/account/keys", bodyOf(KeyBody), accounts.makeKey, makeKey, forPeople),
  route("DELETE", "/v1/account/keys/:id", nothing, accounts.endKey, endKey, forPeople),
  route("GET", "/v1/account/usage", nothing, accounts.usage, getUsage, forAccounts),
  route("GET", "/v1/admin/accounts", queryOf(AccountsQuery), admin.listAccounts, listAccounts, forOperators),
  route("POST", "/v1/admin/accounts", bodyOf(NewAccountBody), admin.createAccount, createAccount, forOperators),
  route("GET", "/v1/admin/accounts/:id", nothing, admin.getAccount, getAnyAccount, forOperators),
  route("POST", "/v1/admin/accounts/:id", bodyOf(AccountChange), admin.changeAccount, changeAccount, forOperators),
  route("POST", "/v1/admin/accounts/:id/password", bodyOf(PasswordReset), admin.resetPassword, resetPassword, forOperators),
  route("DELETE", "/v1/admin/accounts/:id", nothing, admin.deleteAccount, deleteAccount, forOperators),
  route("GET", "/v1/admin/keys", queryOf(KeysQuery), admin.listKeys, listAllKeys, forOperators),
  route("POST", "/v1/admin/keys/:id", bodyOf(KeyChange), admin.changeKey, changeKey, forOperators),
  route("DELETE", "/v1/admin/keys/:id", nothing, admin.endKey, endAnyKey, forOperators),
  route("GET", "/v1/admin/workers", nothing, admin.listWorkers, listWorkers, forOperators),
  route("POST", "/v1/admin/workers/:id/drain", bodyOf(DrainBody), admin.drainWorker, drainWorker, forOperators),
  route("DELETE", "/v1/admin/workers/:id", nothing, admin.forgetWorker, forgetWorker, forOperators),
  route("GET", "/v1/admin/images", queryOf(ImagesQuery), admin.listImages, listImages, forOperators),
  route("DELETE", "/v1/admin/images/:id", queryOf(ImagesQuery), admin.removeImage, removeImage, forOperators),
  route("GET", "/v1/admin/sandboxes", queryOf(SandboxesQuery), admin.listSandboxes, listAllSandboxes, forOperators),
  route("POST", "/v1/admin/sandboxes/:id/move", bodyOf(MoveBody), admin.moveSandbox, moveSandbox, forOperators),
  route("DELETE", "/v1/admin/sandboxes/:id", nothing, admin.deleteSandbox, deleteAnySandbox, forOperators),
  route("GET", "/v1/admin/audit", queryOf(AuditQuery), admin.listAudit, listAudit, forOperators),
  { access: "open", method: "GET", path: "/healthz", answer: health, docs: operations.health },
  { access: "open", method: "GET", path: "/readyz", answer: readiness, docs: operations.readiness },
  { access: "open", method: "GET", path: "/openapi.json", answer: fileOf("document"), docs: operations.document },
  { access: "open", method: "GET", path: "/docs", answer: fileOf("reference"), docs: operations.page },
  { access: "open", method: "GET", path: "/favicon.svg", answer: fileOf("favicon"), docs: "page" },
  { access: "open", method: "GET", path: "/assets/*", answer: asset, docs: "page" },
  ...pagePaths.map((path): OpenRoute => ({ access: "open", method: "GET", path, answer: page, docs: "page" })),
];
