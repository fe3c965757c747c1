/** The table of routes: the only declaration of a path. Method, path, who may, what is checked, who answers. */
import Type, { type Static, type TObject, type TSchema } from "typebox";
import { LogInBody, PasswordBody, SignUpBody } from "../../shared/schemas/accounts.ts";
import { AccountChange, AccountsQuery, KeyChange, KeysQuery } from "../../shared/schemas/admin/accounts.ts";
import { DrainBody, ImagesQuery, SandboxesQuery } from "../../shared/schemas/admin/fleet.ts";
import { ExecuteAsyncBody, ExecuteBody } from "../../shared/schemas/executions.ts";
import { DownloadQuery, StatQuery, UploadQuery } from "../../shared/schemas/files.ts";
import { KeyBody, OwnKeysQuery } from "../../shared/schemas/keys.ts";
import { PageQuery } from "../../shared/schemas/pages.ts";
import { CreateBody, DeleteBody, FindQuery } from "../../shared/schemas/sandboxes.ts";
import { SessionQuery, SessionTokenBody } from "../../shared/schemas/sessions.ts";
import { CloneBody, RestoreBody, SnapshotBody } from "../../shared/schemas/snapshots.ts";
import { LogsQuery, StatusQuery } from "../../shared/schemas/usage.ts";
import { type Check, inputChecker } from "../../shared/schemas/validate.ts";
import type { Caller } from "../accounts/auth.ts";
import type { GatewayContext } from "../context.ts";
import type { OperationDocs } from "../docs/operation.ts";
import * as accounts from "../docs/operations/accounts.ts";
import * as admin from "../docs/operations/admin.ts";
import * as executions from "../docs/operations/executions.ts";
import * as files from "../docs/operations/files.ts";
import * as operations from "../docs/operations/operations.ts";
import * as sandboxes from "../docs/operations/sandboxes.ts";
import * as sessions from "../docs/operations/sessions.ts";
import * as snapshots from "../docs/operations/snapshots.ts";
import { endKey, getAccount, getUsage, listKeys, makeKey } from "../handlers/account.ts";
import { changeAccount, getAnyAccount, listAccounts } from "../handlers/admin/accounts.ts";
import { listImages, removeImage } from "../handlers/admin/images.ts";
import { changeKey, endAnyKey, listAllKeys } from "../handlers/admin/keys.ts";
import { deleteAnySandbox, listAllSandboxes } from "../handlers/admin/sandboxes.ts";
import { drainWorker, forgetWorker, listWorkers } from "../handlers/admin/workers.ts";
import { authSettings, changePassword, logIn, logOut, signUp } from "../handlers/auth.ts";
import { cloneSandbox } from "../handlers/clone.ts";
import { execute, executeAsync } from "../handlers/execute.ts";
import { download, stat, upload } from "../handlers/files.ts";
import { health, readiness } from "../handlers/health.ts";
import { asset, favicon, page, pagePaths } from "../handlers/pages.ts";
import { openApi, reference } from "../handlers/reference.ts";
import { restoreSnapshot } from "../handlers/restore.ts";
import { createSandbox, deleteAllSandboxes, deleteSandbox, findSandboxes, getSandbox, listSandboxes } from "../handlers/sandboxes.ts";
import { listSessions, makeSessionToken, openSession } from "../handlers/sessions.ts";
import { createSnapshot, deleteAllSnapshots, deleteSnapshot, getSnapshot, listSnapshots } from "../handlers/snapshots.ts";
import { sandboxLogs, sandboxStatus } from "../handlers/usage.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Allowance } from "../limit/calls.ts";

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

/** What openapi.json says of a route; `page` is for browsers that load the web pages, and no call. */
type Docs = OperationDocs | "page";

/** Answered without the pipeline. */
interface OpenRoute {
  readonly access: "open";
  readonly docs: Docs;
  readonly method: Method;
  readonly path: string;
  readonly socket?: false;
  readonly answer: (context: GatewayContext, exchange: Exchange) => Promise<void> | void;
}

/**
 * Who may call: `account` with an API key or logged in on the web page, `person` only logged in, `operator` an account
 * that is one, `anyone` from our own pages.
 */
type Access = "account" | "person" | "operator" | "anyone";

export interface CallRoute {
  readonly access: Access;
  readonly docs: Docs;
  readonly method: Method;
  readonly path: string;
  /** Whose tokens a call spends. */
  readonly allowance: Allowance;
  readonly query: { readonly schema: TObject; readonly check: Check<unknown> };
  /** Whether it asks who is logged in: a browser may call it without naming an account. */
  readonly asksWho: boolean;
  /** Whether it is answered by a WebSocket, for which a token may stand in place of the key. */
  readonly socket: boolean;
  /** `file`: the handler reads the body itself, as a stream. */
  readonly body: { readonly schema: TSchema; readonly check: Check<unknown> } | "file";
  readonly handle: (context: GatewayContext, call: Call<never, never>) => Promise<void> | void;
}

export type Route = OpenRoute | CallRoute;

const Nothing = Type.Object({});

function route<Q extends TObject = typeof Nothing, B extends TSchema = typeof Nothing>(
  method: Method,
  path: string,
  { docs, ...schemas }: { query?: Q; body?: B | "file"; docs: OperationDocs },
  handle: (context: GatewayContext, call: Call<Static<Q>, Static<B>>) => Promise<void> | void,
  { access = "account", allowance = "requests", ...more }: { access?: Access; allowance?: Allowance; socket?: boolean; asksWho?: boolean } = {},
): CallRoute {
  const query = schemas.query ?? Nothing;
  const body = schemas.body ?? Nothing;
  return {
    access,
    docs,
    method,
    path,
    allowance,
    asksWho: more.asksWho ?? false,
    socket: more.socket ?? false,
    query: inputChecker(query),
    body: body === "file" ? body : inputChecker(body),
    handle: handle as CallRoute["handle"],
  };
}

/** What tells a client how to do what it is about to do: a command that needs two calls counts as one. */
const toLookUp = { allowance: "lookups" } as const;
const forAnyone = { access: "anyone" } as const;
const forPeople = { access: "person", allowance: "pages" } as const;
const forAccounts = { access: "account", allowance: "pages" } as const;
const forOperators = { access: "operator", allowance: "pages" } as const;

export const routes: readonly Route[] = [
  route("POST", "/v1/sandboxes/create", { body: CreateBody, docs: sandboxes.create }, createSandbox),
  route("GET", "/v1/sandboxes/list", { query: PageQuery, docs: sandboxes.list }, listSandboxes),
  route("GET", "/v1/sandboxes/find", { query: FindQuery, docs: sandboxes.find }, findSandboxes, toLookUp),
  route("GET", "/v1/sandboxes/logs", { query: LogsQuery, docs: sandboxes.logs }, sandboxLogs),
  route("DELETE", "/v1/sandboxes/delete-all", { docs: sandboxes.removeAll }, deleteAllSandboxes),
  route("GET", "/v1/sandboxes/:id", { docs: sandboxes.get }, getSandbox),
  route("DELETE", "/v1/sandboxes/:id/delete", { body: DeleteBody, docs: sandboxes.remove }, deleteSandbox),
  route("GET", "/v1/sandboxes/:id/status", { query: StatusQuery, docs: sandboxes.status }, sandboxStatus),
  route("POST", "/v1/sandboxes/:id/execute", { body: ExecuteBody, docs: executions.execute }, execute),
  route("POST", "/v1/sandboxes/:id/execute_async", { body: ExecuteAsyncBody, docs: executions.executeAsync }, executeAsync),
  route("GET", "/v1/sandboxes/:id/session", { query: SessionQuery, docs: sessions.open }, openSession, { socket: true }),
  route("POST", "/v1/sandboxes/:id/session-token", { body: SessionTokenBody, docs: sessions.token }, makeSessionToken),
  route("GET", "/v1/sandboxes/:id/sessions", { docs: sessions.list }, listSessions),
  route("POST", "/v1/sandboxes/:id/upload", { query: UploadQuery, body: "file", docs: files.upload }, upload),
  route("GET", "/v1/sandboxes/:id/download", { query: DownloadQuery, docs: files.download }, download),
  route("GET", "/v1/sandboxes/:id/stat", { query: StatQuery, docs: files.stat }, stat, toLookUp),
  route("POST", "/v1/sandboxes/:id/snapshot", { body: SnapshotBody, docs: snapshots.take }, createSnapshot),
  route("POST", "/v1/sandboxes/:id/clone", { body: CloneBody, docs: snapshots.clone }, cloneSandbox),
  route("GET", "/v1/snapshots/list", { query: PageQuery, docs: snapshots.list }, listSnapshots),
  route("DELETE", "/v1/snapshots/delete-all", { docs: snapshots.removeAll }, deleteAllSnapshots),
  route("GET", "/v1/snapshots/:id", { docs: snapshots.get }, getSnapshot),
  route("POST", "/v1/snapshots/:id/restore", { body: RestoreBody, docs: snapshots.restore }, restoreSnapshot),
  route("DELETE", "/v1/snapshots/:id", { docs: snapshots.remove }, deleteSnapshot),
  route("GET", "/v1/auth/settings", { docs: accounts.settings }, authSettings, forAnyone),
  route("POST", "/v1/auth/signup", { body: SignUpBody, docs: accounts.signUp }, signUp, forAnyone),
  route("POST", "/v1/auth/login", { body: LogInBody, docs: accounts.logIn }, logIn, forAnyone),
  route("POST", "/v1/auth/logout", { docs: accounts.logOut }, logOut, forPeople),
  route("GET", "/v1/account", { docs: accounts.get }, getAccount, { ...forAccounts, asksWho: true }),
  route("POST", "/v1/account/password", { body: PasswordBody, docs: accounts.changePassword }, changePassword, forPeople),
  route("GET", "/v1/account/keys", { query: OwnKeysQuery, docs: accounts.listKeys }, listKeys, forAccounts),
  route("POST", "/v1/account/keys", { body: KeyBody, docs: accounts.makeKey }, makeKey, forPeople),
  route("DELETE", "/v1/account/keys/:id", { docs: accounts.endKey }, endKey, forPeople),
  route("GET", "/v1/account/usage", { docs: accounts.usage }, getUsage, forAccounts),
  route("GET", "/v1/admin/accounts", { query: AccountsQuery, docs: admin.listAccounts }, listAccounts, forOperators),
  route("GET", "/v1/admin/accounts/:id", { docs: admin.getAccount }, getAnyAccount, forOperators),
  route("POST", "/v1/admin/accounts/:id", { body: AccountChange, docs: admin.changeAccount }, changeAccount, forOperators),
  route("GET", "/v1/admin/keys", { query: KeysQuery, docs: admin.listKeys }, listAllKeys, forOperators),
  route("POST", "/v1/admin/keys/:id", { body: KeyChange, docs: admin.changeKey }, changeKey, forOperators),
  route("DELETE", "/v1/admin/keys/:id", { docs: admin.endKey }, endAnyKey, forOperators),
  route("GET", "/v1/admin/workers", { docs: admin.listWorkers }, listWorkers, forOperators),
  route("POST", "/v1/admin/workers/:id/drain", { body: DrainBody, docs: admin.drainWorker }, drainWorker, forOperators),
  route("DELETE", "/v1/admin/workers/:id", { docs: admin.forgetWorker }, forgetWorker, forOperators),
  route("GET", "/v1/admin/images", { query: ImagesQuery, docs: admin.listImages }, listImages, forOperators),
  route("DELETE", "/v1/admin/images/:id", { query: ImagesQuery, docs: admin.removeImage }, removeImage, forOperators),
  route("GET", "/v1/admin/sandboxes", { query: SandboxesQuery, docs: admin.listSandboxes }, listAllSandboxes, forOperators),
  route("DELETE", "/v1/admin/sandboxes/:id", { docs: admin.deleteSandbox }, deleteAnySandbox, forOperators),
  { access: "open", method: "GET", path: "/healthz", answer: health, docs: operations.health },
  { access: "open", method: "GET", path: "/readyz", answer: readiness, docs: operations.readiness },
  { access: "open", method: "GET", path: "/openapi.json", answer: openApi, docs: operations.document },
  { access: "open", method: "GET", path: "/docs", answer: reference, docs: operations.page },
  { access: "open", method: "GET", path: "/favicon.svg", answer: favicon, docs: "page" },
  { access: "open", method: "GET", path: "/assets/*", answer: asset, docs: "page" },
  ...pagePaths.map((path): OpenRoute => ({ access: "open", method: "GET", path, answer: page, docs: "page" })),
];
