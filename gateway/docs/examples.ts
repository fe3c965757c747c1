/** Example values for openapi.json. */
import type { Account, ApiKey, CurrentAccount } from "../../shared/schemas/accounts.ts";
import type { AdminAccount, AdminApiKey } from "../../shared/schemas/admin/accounts.ts";
import type { SandboxInfo } from "../../shared/schemas/sandboxes.ts";
import type { SnapshotInfo } from "../../shared/schemas/snapshots.ts";

export const ids = {
  sandbox: "sb_01k9zq4w7x3f8m2n5p6r7s8t9v",
  clone: "sb_01k9zq9a1b2c3d4e5f6g7h8j9k",
  snapshot: "snap_01k9zq8h0j1k2m3n4p5q6r7s8t",
  execution: "exec_01k9zq5y6z7a8b9c0d1e2f3g4h",
  session: "sess_01k9zq6m7n8p9q0r1s2t3v4w5x",
  key: "key_01k9zpx0y1z2a3b4c5d6e7f8g9",
  account: "acct_01k9zpw3x4y5z6a7b8c9d0e1f2",
  operator: "acct_00000000000000000000000000",
  image: "b0d40d23a9c1f5ae9d9bd1c9a5a7d0d6f3f5b7a1c2e4d6f8091a2b3c4d5e6f70",
  worker: "wk_01k9zpv5w6x7y8z9a0b1c2d3e4",
  request: "req_01k9zqb7c8d9e0f1g2h3j4k5m6",
} as const;

/** By id, the shell variable that replaces it in the curl examples. */
export const variables: Readonly<Record<string, string>> = Object.fromEntries(Object.entries(ids).map(([name, id]) => [id, `$${name.toUpperCase()}`]));

const at = (clock: string): string => `2026-01-31T${clock}.000Z`;
export const times = { made: at("12:00:00"), began: at("12:01:00"), ended: at("12:01:01"), now: at("12:05:00") } as const;

export const sandbox: SandboxInfo = {
  id: ids.sandbox,
  name: "nightly-report",
  status: "running",
  image: "default",
  created_at: times.made,
  cpu: 1,
  memory: 512,
  storage: 5,
  disk_size: 5,
  network: { access: "outbound" },
  isolation: "standard",
  memory_restored: false,
  memory_reason: null,
};

export const snapshot: SnapshotInfo = {
  id: ids.snapshot,
  name: "before-the-upgrade",
  source_sandbox_id: ids.sandbox,
  source_sandbox_name: sandbox.name,
  status: "ready",
  created_at: times.now,
  consistency: "application",
  size_bytes: 3_145_728,
  exclusive_bytes: 16_384,
  shared_bytes: 3_129_344,
  memory: true,
  memory_reason: null,
  pause_ms: 184.2,
};

/** A list of one page. */
export const pageOf = <T>(item: T) => ({ data: [item], pagination: { page: 1, page_size: 20, total_items: 1, total_pages: 1 } });

export const limits = { requests_per_minute: 60, burst: 60, sandboxes: 10 };

export const account: Account = {
  id: ids.account,
  email: "ada@example.com",
  name: "Ada Lovelace",
  tier: "beta",
  operator: false,
  created_at: times.made,
  limits,
};

export const session: CurrentAccount = { account, csrf_token: "nV0m8Xq4Tj1yBf6kRw2sLc9pZd7hGa3u", features: ["snapshots"], keys_max: 5 };

export const key: ApiKey = {
  id: ids.key,
  name: "CI pipeline",
  prefix: "sg_Xk2b9Qw",
  created_at: times.made,
  last_used_at: times.now,
  revoked_at: null,
  tier: "beta",
  limits,
};

export const adminAccount: AdminAccount = { ...account, custom_limits: null, suspended: false, isolation: "standard", keys: 1, sandboxes: 1 };
export const adminKey: AdminApiKey = { ...key, account_id: ids.account, custom_tier: null, custom_limits: null, sandboxes: 1 };
