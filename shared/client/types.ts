/** The inputs and answers of calls, with the field names of the HTTP API. All of them are declared by its schemas. */

import type { Pagination } from "../schemas/fields.ts";
import type { UploadResult } from "../schemas/files.ts";

export type { AccountUsage, ApiKey, CurrentAccount as Account } from "../schemas/accounts.ts";
export type {
  AccountChange,
  AdminAccount,
  AdminAccountWithKeys,
  AdminApiKey,
  AdminNewAccount,
  AdminNewPassword,
  AdminRevokedApiKey,
  DeletedAccount,
  KeyChange,
  NewAccountBody,
  PasswordReset,
} from "../schemas/admin/accounts.ts";
export type { AuditEntry, AuditPage, AuditQuery } from "../schemas/admin/audit.ts";
export type {
  AdminDeletedSandbox,
  AdminSandbox,
  DrainedWorker,
  ForgottenWorker,
  GoneWorker,
  ImageInfo,
  MovedSandbox,
  RemovedImage,
  Worker,
  WorkerInfo,
} from "../schemas/admin/fleet.ts";
export type { ExecuteBody, ExecutionResult, ExecutionStatus } from "../schemas/executions.ts";
export type { PageQuery } from "../schemas/fields.ts";
export type { FileInfo, UploadResult } from "../schemas/files.ts";
export type { CustomLimits, Limits } from "../schemas/limits.ts";
export type { CreateBody, DeleteBody, DeletedAll, DeletedSandbox, Resources, SandboxInfo } from "../schemas/sandboxes.ts";
export type { SessionInfo, SessionToken } from "../schemas/sessions.ts";
export type { CloneBody, DeletedSnapshot, Fork, ForkBody, RestoreBody, SnapshotBody, SnapshotInfo } from "../schemas/snapshots.ts";
export type { LogEntry, Logs, LogsQuery, SandboxUsage, StatusQuery } from "../schemas/usage.ts";

/** A piece of the output of a running command. */
export type OutputChunk = { stdout: string; stderr?: never } | { stderr: string; stdout?: never };

/** The result of unpacking an archive. */
export interface ArchiveResult extends UploadResult {
  files: number;
}

export interface PageOf<T> {
  data: T[];
  pagination: Pagination;
}
