/** What the operator's calls take and answer. Plain types as in `./types.ts`, compared with the schemas by the same test. */
import type { ApiKey, Limits, SandboxInfo } from "./types.ts";

type Tier = "beta" | "pro" | "enterprise";

/** Numbers in place of the tier's, as far as they are given. */
export type CustomLimits = Partial<Limits>;

export interface AdminAccount {
  id: string;
  /** Null for the account that the settings make. */
  email: string | null;
  name: string;
  tier: Tier;
  operator: boolean;
  created_at: string;
  limits: Limits;
  custom_limits: CustomLimits | null;
  suspended: boolean;
  /** Active keys. */
  keys: number;
  /** In every state. */
  sandboxes: number;
}

export interface AdminAccountWithKeys extends AdminAccount {
  api_keys: AdminApiKey[];
}

export interface AccountChange {
  tier?: Tier;
  /** Null takes all numbers away. */
  limits?: CustomLimits | null;
  suspended?: boolean;
  operator?: boolean;
}

export interface AdminApiKey extends ApiKey {
  account_id: string;
  custom_tier: Tier | null;
  custom_limits: CustomLimits | null;
  /** That it has made. */
  sandboxes: number;
}

export interface KeyChange {
  /** Null takes the key's own tier away. */
  tier?: Tier | null;
  /** Null takes all numbers away. */
  limits?: CustomLimits | null;
}

export interface AdminRevokedApiKey {
  id: string;
  account_id: string;
  message: string;
  revoked_at: string;
}

export interface AdminSandbox extends Omit<SandboxInfo, "error"> {
  account_id: string;
  /** The key, or account, that it counts against. */
  key_id: string;
  worker_id: string;
  error: string | null;
}

export interface AdminDeletedSandbox {
  id: string;
  account_id: string;
  message: string;
  storage_deleted: boolean;
}

export type WorkerInfo = PresentWorker | GoneWorker;

/** A worker that is there. */
export interface PresentWorker {
  id: string;
  present: true;
  /** It is stopping. */
  draining: boolean;
  /** It takes no new sandboxes. */
  cordoned: boolean;
  sandboxes: number;
  sandboxes_max: number;
  memory_free_bytes: number;
  disk_free_bytes: number;
  load_per_cpu: number;
  /** Limits that its host lacks. */
  not_enforced: string[];
}

/** A worker that is gone but still has sandboxes in the directory. */
export interface GoneWorker {
  id: string;
  present: false;
  sandboxes: number;
}

export interface DrainedWorker {
  id: string;
  cordoned: boolean;
  message: string;
}

export interface ForgottenWorker {
  id: string;
  message: string;
  forgotten_sandboxes: number;
}

/** An image on one worker. */
export interface ImageInfo {
  worker_id: string;
  id: string;
  names: string[];
  /** With the layers that it shares with others. */
  size_bytes: number;
  last_used_at: string | null;
  in_use: boolean;
  /** It is the one that `default` means. */
  default: boolean;
}

export interface RemovedImage {
  id: string;
  message: string;
  /** Where it was. */
  workers: string[];
}
