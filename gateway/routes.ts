/** The table of routes: the only declaration of a path. Method, path, who may, what is checked, who answers. */
import Type, { type Static, type TObject, type TSchema } from "typebox";
import {
  AccountChange,
  AccountsQuery,
  DrainBody,
  KeyBody,
  KeyChange,
  KeysQuery,
  LogInBody,
  PasswordBody,
  SandboxesQuery,
  SignUpBody,
} from "../shared/schemas/accounts.ts";
import {
  CloneBody,
  CreateBody,
  DeleteBody,
  DownloadQuery,
  ExecuteAsyncBody,
  ExecuteBody,
  LogsQuery,
  PageQuery,
  RestoreBody,
  SnapshotBody,
  StatusQuery,
  UploadQuery,
} from "../shared/schemas/api.ts";
import { type Check, checker } from "../shared/schemas/validate.ts";
import type { Caller } from "./auth.ts";
import type { GatewayContext } from "./context.ts";
import { endKey, getAccount, getUsage, listKeys, makeKey } from "./handlers/account.ts";
import { changeAccount, getAnyAccount, listAccounts } from "./handlers/admin/accounts.ts";
import { changeKey, endAnyKey, listAllKeys } from "./handlers/admin/keys.ts";
import { deleteAnySandbox, listAllSandboxes } from "./handlers/admin/sandboxes.ts";
import { drainWorker, forgetWorker, listWorkers } from "./handlers/admin/workers.ts";
import { authSettings, changePassword, logIn, logOut, signUp } from "./handlers/auth.ts";
import { cloneSandbox } from "./handlers/clone.ts";
import { execute, executeAsync } from "./handlers/execute.ts";
import { download, upload } from "./handlers/files.ts";
import { health, readiness } from "./handlers/health.ts";
import { asset, favicon, page, pagePaths } from "./handlers/pages.ts";
import { restoreSnapshot } from "./handlers/restore.ts";
import { createSandbox, deleteAllSandboxes, deleteSandbox, getSandbox, listSandboxes } from "./handlers/sandboxes.ts";
import { createSnapshot, deleteAllSnapshots, deleteSnapshot, getSnapshot, listSnapshots } from "./handlers/snapshots.ts";
import { sandboxLogs, sandboxStatus } from "./handlers/usage.ts";
import type { Exchange } from "./http/exchange.ts";
import type { Allowance } from "./limit/calls.ts";

/** A call that passed the pipeline. */
export interface Call<Query, Body> {
  readonly exchange: Exchange;
  readonly caller: Caller;
  readonly query: Query;
  readonly body: Body;
  /** The `:id` of the path, empty where it has none. */
  readonly id: string;
  /** Who asks, as every message to a worker says. */
  readonly by: { readonly request_id: string; readonly account_id: string };
}

type Method = "GET" | "POST" | "DELETE";

/** Answered without the pipeline. */
interface OpenRoute {
  readonly access: "open";
  readonly method: Method;
  readonly path: string;
  readonly answer: (context: GatewayContext, exchange: Exchange) => Promise<void> | void;
}

/**
 * Who may call: `account` with an API key or logged in on the web page, `person` only logged in, `operator` an account
 * that is one, `anyone` from our own pages.
 */
type Access = "account" | "person" | "operator" | "anyone";

export interface CallRoute {
  readonly access: Access;
  readonly method: Method;
  readonly path: string;
  /** Whose tokens a call spends. */
  readonly allowance: Allowance;
  readonly query: { readonly schema: TObject; readonly check: Check<unknown> };
  /** `file`: the handler reads the body itself, as a stream. */
  readonly body: { readonly schema: TSchema; readonly check: Check<unknown> } | "file";
  readonly handle: (context: GatewayContext, call: Call<never, never>) => Promise<void> | void;
}

export type Route = OpenRoute | CallRoute;

const Nothing = Type.Object({});

function route<Q extends TObject = typeof Nothing, B extends TSchema = typeof Nothing>(
  method: Method,
  path: string,
  schemas: { query?: Q; body?: B | "file" },
  handle: (context: GatewayContext, call: Call<Static<Q>, Static<B>>) => Promise<void> | void,
  { access = "account", allowance = "requests" }: { access?: Access; allowance?: Allowance } = {},
): CallRoute {
  const query = schemas.query ?? Nothing;
  const body = schemas.body ?? Nothing;
  return {
    access,
    method,
    path,
    allowance,
    query: { schema: query, check: checker(query) },
    body: body === "file" ? body : { schema: body, check: checker(body) },
    handle: handle as CallRoute["handle"],
  };
}

const forAnyone = { access: "anyone" } as const;
const forPeople = { access: "person", allowance: "pages" } as const;
const forAccounts = { access: "account", allowance: "pages" } as const;
const forOperators = { access: "operator", allowance: "pages" } as const;

export const routes: readonly Route[] = [
  route("POST", "/v1/sandboxes/create", { body: CreateBody }, createSandbox),
  route("GET", "/v1/sandboxes/list", { query: PageQuery }, listSandboxes),
  route("GET", "/v1/sandboxes/logs", { query: LogsQuery }, sandboxLogs),
  route("DELETE", "/v1/sandboxes/delete-all", {}, deleteAllSandboxes),
  route("GET", "/v1/sandboxes/:id", {}, getSandbox),
  route("DELETE", "/v1/sandboxes/:id/delete", { body: DeleteBody }, deleteSandbox),
  route("GET", "/v1/sandboxes/:id/status", { query: StatusQuery }, sandboxStatus),
  route("POST", "/v1/sandboxes/:id/execute", { body: ExecuteBody }, execute),
  route("POST", "/v1/sandboxes/:id/execute_async", { body: ExecuteAsyncBody }, executeAsync),
  route("POST", "/v1/sandboxes/:id/upload", { query: UploadQuery, body: "file" }, upload),
  route("GET", "/v1/sandboxes/:id/download", { query: DownloadQuery }, download),
  route("POST", "/v1/sandboxes/:id/snapshot", { body: SnapshotBody }, createSnapshot),
  route("POST", "/v1/sandboxes/:id/clone", { body: CloneBody }, cloneSandbox),
  route("GET", "/v1/snapshots/list", { query: PageQuery }, listSnapshots),
  route("DELETE", "/v1/snapshots/delete-all", {}, deleteAllSnapshots),
  route("GET", "/v1/snapshots/:id", {}, getSnapshot),
  route("POST", "/v1/snapshots/:id/restore", { body: RestoreBody }, restoreSnapshot),
  route("DELETE", "/v1/snapshots/:id", {}, deleteSnapshot),
  route("GET", "/v1/auth/settings", {}, authSettings, forAnyone),
  route("POST", "/v1/auth/signup", { body: SignUpBody }, signUp, forAnyone),
  route("POST", "/v1/auth/login", { body: LogInBody }, logIn, forAnyone),
  route("POST", "/v1/auth/logout", {}, logOut, forPeople),
  route("GET", "/v1/account", {}, getAccount, forAccounts),
  route("POST", "/v1/account/password", { body: PasswordBody }, changePassword, forPeople),
  route("GET", "/v1/account/keys", {}, listKeys, forAccounts),
  route("POST", "/v1/account/keys", { body: KeyBody }, makeKey, forPeople),
  route("DELETE", "/v1/account/keys/:id", {}, endKey, forPeople),
  route("GET", "/v1/account/usage", {}, getUsage, forAccounts),
  route("GET", "/v1/admin/accounts", { query: AccountsQuery }, listAccounts, forOperators),
  route("GET", "/v1/admin/accounts/:id", {}, getAnyAccount, forOperators),
  route("POST", "/v1/admin/accounts/:id", { body: AccountChange }, changeAccount, forOperators),
  route("GET", "/v1/admin/keys", { query: KeysQuery }, listAllKeys, forOperators),
  route("POST", "/v1/admin/keys/:id", { body: KeyChange }, changeKey, forOperators),
  route("DELETE", "/v1/admin/keys/:id", {}, endAnyKey, forOperators),
  route("GET", "/v1/admin/workers", {}, listWorkers, forOperators),
  route("POST", "/v1/admin/workers/:id/drain", { body: DrainBody }, drainWorker, forOperators),
  route("DELETE", "/v1/admin/workers/:id", {}, forgetWorker, forOperators),
  route("GET", "/v1/admin/sandboxes", { query: SandboxesQuery }, listAllSandboxes, forOperators),
  route("DELETE", "/v1/admin/sandboxes/:id", {}, deleteAnySandbox, forOperators),
  { access: "open", method: "GET", path: "/healthz", answer: health },
  { access: "open", method: "GET", path: "/readyz", answer: readiness },
  { access: "open", method: "GET", path: "/favicon.svg", answer: favicon },
  { access: "open", method: "GET", path: "/assets/*", answer: asset },
  ...pagePaths.map((path): OpenRoute => ({ access: "open", method: "GET", path, answer: page })),
];
