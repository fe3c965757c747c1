/** The exports of `sandgate/client` for both Node and browsers. */
export type { ErrorCode, ErrorReason } from "../errors.ts";
export type { Admin } from "./admin.ts";
export type { CallOptions, MakeOptions } from "./call-options.ts";
export type { ClientOptions } from "./client.ts";
export {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  SandgateError,
  UnprocessableEntityError,
} from "./errors.ts";
export type { Execution, ExecutionEnd, OutputHandlers } from "./execution.ts";
export type { ArchiveOptions, DownloadOptions, UploadOptions } from "./files.ts";
export type { List } from "./pages.ts";
export type { ExecuteAsyncOptions, ExecuteOptions, Forked, Sandbox, SandboxHandle, Snapshot } from "./sandbox.ts";
export type { Sandboxes } from "./sandboxes.ts";
export type { AttachOptions, SessionOptions } from "./session/open.ts";
export type { Session } from "./session/session.ts";
export type { SessionEnd, SessionOutput, TerminalSize } from "./session/types.ts";
export type { Snapshots } from "./snapshots.ts";
export type { Download, OnProgress, UploadSource } from "./transfer.ts";
export type * from "./types.ts";
