/** The client's types are those of the schemas: this file does not compile where they differ. */
import { test } from "node:test";
import type * as Admin from "../../../../shared/client/admin-types.ts";
import type * as Client from "../../../../shared/client/types.ts";
import type * as Accounts from "../../../../shared/schemas/accounts.ts";
import type * as AdminAccounts from "../../../../shared/schemas/admin/accounts.ts";
import type * as Fleet from "../../../../shared/schemas/admin/fleet.ts";
import type * as Executions from "../../../../shared/schemas/executions.ts";
import type * as Files from "../../../../shared/schemas/files.ts";
import type * as Keys from "../../../../shared/schemas/keys.ts";
import type * as Pages from "../../../../shared/schemas/pages.ts";
import type * as Sandboxes from "../../../../shared/schemas/sandboxes.ts";
import type * as Snapshots from "../../../../shared/schemas/snapshots.ts";
import type * as Usage from "../../../../shared/schemas/usage.ts";

/** Each fits where the other is wanted, down to what is optional. */
type Same<A, B> = [A, B] extends [B, A]
  ? Required<A> extends Required<B>
    ? keyof A extends keyof B
      ? keyof B extends keyof A
        ? true
        : false
      : false
    : false
  : false;

const same = <A, B>(_agree: Same<A, B>): void => {};

test("what is sent", () => {
  same<Client.CreateBody, Sandboxes.CreateBody>(true);
  same<Client.DeleteBody, Sandboxes.DeleteBody>(true);
  same<Client.SnapshotBody, Snapshots.SnapshotBody>(true);
  same<Client.CloneBody, Snapshots.CloneBody>(true);
  same<Client.RestoreBody, Snapshots.RestoreBody>(true);
  same<Client.ExecuteBody, Executions.ExecuteBody>(true);
  same<Client.ExecuteBody, Executions.ExecuteAsyncBody>(true);
  same<Client.PageQuery, Pages.PageQuery>(true);
  same<Client.StatusQuery, Usage.StatusQuery>(true);
  same<Client.LogsQuery, Usage.LogsQuery>(true);
});

test("what is answered", () => {
  same<Client.SandboxInfo, Sandboxes.SandboxInfo>(true);
  same<Client.SnapshotInfo, Snapshots.SnapshotInfo>(true);
  same<Client.ExecutionResult, Executions.ExecutionResult>(true);
  same<Client.UploadResult, Files.UploadResult>(true);
  same<Client.FileInfo, Files.FileInfo>(true);
  same<Client.SandboxUsage, Usage.SandboxUsage>(true);
  same<Client.Logs, Usage.Logs>(true);
  same<Client.DeletedSandbox, Sandboxes.DeletedSandbox>(true);
  same<Client.DeletedSnapshot, Snapshots.DeletedSnapshot>(true);
  same<Client.DeletedAll, Sandboxes.DeletedAll>(true);
  same<Client.AccountUsage, Accounts.AccountUsage>(true);
  same<Client.ApiKey, Keys.ApiKey>(true);
  same<Client.Account, Omit<Accounts.CurrentAccount, "csrf_token">>(true);
});

test("what operators send and are answered", () => {
  same<Admin.AccountChange, AdminAccounts.AccountChange>(true);
  same<Admin.KeyChange, AdminAccounts.KeyChange>(true);
  same<Admin.AdminAccountWithKeys, AdminAccounts.AdminAccountWithKeys>(true);
  same<Admin.AdminAccount, AdminAccounts.AdminAccount>(true);
  same<Admin.AdminApiKey, AdminAccounts.AdminApiKey>(true);
  same<Admin.AdminRevokedApiKey, AdminAccounts.AdminRevokedApiKey>(true);
  same<Admin.AdminSandbox, Fleet.AdminSandbox>(true);
  same<Admin.AdminDeletedSandbox, Fleet.AdminDeletedSandbox>(true);
  same<Admin.WorkerInfo, Fleet.WorkerInfo>(true);
  same<Admin.DrainedWorker, Fleet.DrainedWorker>(true);
  same<Admin.ForgottenWorker, Fleet.ForgottenWorker>(true);
  same<Admin.ImageInfo, Fleet.ImageInfo>(true);
  same<Admin.RemovedImage, Fleet.RemovedImage>(true);
});
