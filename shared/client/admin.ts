/** The operator's calls for the accounts, keys, sandboxes, workers, images and audit record of the installation. */

import { type CallOptions, split } from "./call-options.ts";
import { Calls, type Query } from "./connection.ts";
import { List } from "./pages.ts";
import type * as Api from "./types.ts";
import type { PageOf } from "./types.ts";

/** Longer than the server needs to delete a sandbox. */
const deleteTimeoutMs = 90_000;
/** Longer than the server may take for the files of a sandbox. */
const moveTimeoutMs = 3_900_000;

type Filter<Q> = Q & CallOptions;

/** Requests below `/v1/admin`. */
abstract class AdminCalls extends Calls {
  protected read<T>(path: string, filter: CallOptions): Promise<T> {
    const [query, options] = split(filter);
    return this.connection.get(`/v1/admin/${path}`, options, query as Query);
  }

  protected pages<T extends { readonly id: string }>(path: string, filter: CallOptions): List<T> {
    return new List((page) => this.read<PageOf<T>>(path, { ...filter, ...page }));
  }

  /** Sends a change that can safely be repeated. */
  protected send<T>(path: string, json: object, options: CallOptions): Promise<T> {
    return this.connection.json({ method: "POST", path: `/v1/admin/${path}`, json, repeatable: true, options });
  }

  /** Sends a deletion; never repeated. */
  protected drop<T>(path: string, filter: CallOptions): Promise<T> {
    const [query, options] = split(filter);
    const call = { method: "DELETE", path: `/v1/admin/${path}`, query: query as Query, repeatable: false, options, timeoutMs: deleteTimeoutMs } as const;
    return this.connection.json(call);
  }
}

/** `client.admin.accounts`. */
class AdminAccounts extends AdminCalls {
  /** Newest first. `email` selects the accounts with this text in their address. */
  list(filter: Filter<{ email?: string | undefined }> = {}): List<Api.AdminAccount> {
    return this.pages("accounts", filter);
  }

  get(id: string, options: CallOptions = {}): Promise<Api.AdminAccountWithKeys> {
    return this.read(of("accounts", id), options);
  }

  /** Creates an account with a password that the server makes up; never repeated, because only the first answer shows it. */
  create(json: Api.NewAccountBody, options: CallOptions = {}): Promise<Api.AdminNewAccount> {
    return this.connection.json({ method: "POST", path: "/v1/admin/accounts", json, repeatable: false, options });
  }

  /** Changes the given fields; others stay unchanged. */
  change(id: string, change: Api.AccountChange, options: CallOptions = {}): Promise<Api.AdminAccountWithKeys> {
    return this.send(of("accounts", id), change, options);
  }

  /** Sets a password, or one that the server makes up and answers with, and ends all logins of the account's browsers. */
  resetPassword(id: string, reset: Api.PasswordReset = {}, options: CallOptions = {}): Promise<Api.AdminNewPassword> {
    return this.send(`${of("accounts", id)}/password`, reset, options);
  }

  /** Deletes an account with its sandboxes, snapshots, keys and logs. Can be repeated after a failure. */
  delete(id: string, options: CallOptions = {}): Promise<Api.DeletedAccount> {
    return this.drop(of("accounts", id), options);
  }
}

/** `client.admin.keys`. */
class AdminKeys extends AdminCalls {
  /** Newest first. */
  list(filter: Filter<{ account_id?: string | undefined }> = {}): List<Api.AdminApiKey> {
    return this.pages("keys", filter);
  }

  /** Changes the given fields; others stay unchanged. */
  change(id: string, change: Api.KeyChange, options: CallOptions = {}): Promise<Api.AdminApiKey> {
    return this.send(of("keys", id), change, options);
  }

  revoke(id: string, options: CallOptions = {}): Promise<Api.AdminRevokedApiKey> {
    return this.drop(of("keys", id), options);
  }
}

/** `client.admin.sandboxes`. */
class AdminSandboxes extends AdminCalls {
  /** Sandboxes in any state, newest first. */
  list(filter: Filter<{ account_id?: string | undefined; worker_id?: string | undefined }> = {}): List<Api.AdminSandbox> {
    return this.pages("sandboxes", filter);
  }

  /** Moves a running sandbox to another worker, chosen by the server or named; never repeated. It takes as long as its files take. */
  move(id: string, { worker_id, ...options }: Filter<{ worker_id?: string | undefined }> = {}): Promise<Api.MovedSandbox> {
    const json = worker_id === undefined ? {} : { worker_id };
    return this.connection.json({ method: "POST", path: `/v1/admin/${of("sandboxes", id)}/move`, json, repeatable: false, options, timeoutMs: moveTimeoutMs });
  }

  delete(id: string, options: CallOptions = {}): Promise<Api.AdminDeletedSandbox> {
    return this.drop(of("sandboxes", id), options);
  }
}

/** `client.admin.workers`. */
class AdminWorkers extends AdminCalls {
  /** Workers that are present, and those that are gone but still have sandboxes. */
  async list(options: CallOptions = {}): Promise<Api.WorkerInfo[]> {
    return (await this.read<{ data: Api.WorkerInfo[] }>("workers", options)).data;
  }

  /** Cordons a worker, so that it accepts no new sandboxes; `on: false` undoes that. */
  drain(id: string, { on = true, ...options }: Filter<{ on?: boolean }> = {}): Promise<Api.DrainedWorker> {
    return this.send(`${of("workers", id)}/drain`, { on }, options);
  }

  /** Drops a worker that will never come back, with its sandboxes. */
  forget(id: string, options: CallOptions = {}): Promise<Api.ForgottenWorker> {
    return this.drop(of("workers", id), options);
  }
}

/** `client.admin.images`. */
class AdminImages extends AdminCalls {
  /** Images of all workers or of one, most recently used first. */
  async list(filter: Filter<{ worker_id?: string | undefined }> = {}): Promise<Api.ImageInfo[]> {
    return (await this.read<{ data: Api.ImageInfo[] }>("images", filter)).data;
  }

  /** Removes an image from all workers or from one. */
  remove(id: string, filter: Filter<{ worker_id?: string | undefined }> = {}): Promise<Api.RemovedImage> {
    return this.drop(of("images", id), filter);
  }
}

/** `client.admin.audit`. */
class AdminAudit extends AdminCalls {
  /** Every entry once, newest first. Pages are fetched as the loop reaches them. `limit` is the size of a page. */
  async *list(filter: Filter<Api.AuditQuery> = {}): AsyncGenerator<Api.AuditEntry, void, void> {
    for (let cursor = filter.cursor, hasMore = true; hasMore; ) {
      const { data, next_cursor } = await this.page({ ...filter, ...(cursor === undefined ? {} : { cursor }) });
      yield* data;
      cursor = next_cursor;
      hasMore = next_cursor !== undefined;
    }
  }

  /** One page. It can have fewer entries than the limit although there are more. */
  page(filter: Filter<Api.AuditQuery> = {}): Promise<Api.AuditPage> {
    return this.read("audit", filter);
  }
}

/** `client.admin`. All methods throw the errors of `./errors.ts`; callers who are not operators get a `PermissionDeniedError`. */
export class Admin extends Calls {
  readonly accounts = new AdminAccounts(this.connection);
  readonly keys = new AdminKeys(this.connection);
  readonly sandboxes = new AdminSandboxes(this.connection);
  readonly workers = new AdminWorkers(this.connection);
  readonly images = new AdminImages(this.connection);
  readonly audit = new AdminAudit(this.connection);
}

const of = (kind: string, id: string): string => `${kind}/${encodeURIComponent(id)}`;
