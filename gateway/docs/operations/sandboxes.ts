/** Calls about sandboxes. */
import { DeletedAll, DeletedSandbox, FoundSandboxes, SandboxInfo, SandboxPage } from "../../../shared/schemas/sandboxes.ts";
import { Logs, SandboxUsage } from "../../../shared/schemas/usage.ts";
import { ids, pageOf, sandbox, times } from "../examples.ts";
import { noDisk, noImageHad, noSandbox, notRunning, repeated, sandboxLimit } from "../failures.ts";
import { made, type OperationDocs, ok } from "../operation.ts";

const tag = "Sandboxes";

export const create = {
  tag,
  name: "createSandbox",
  summary: "Create a sandbox",
  description:
    "A sandbox has 1 CPU, 512 MiB of memory, 5 GB of storage and `outbound` network where the call says nothing else. It counts against the key that made it until it is gone.",
  body: { image: "default", name: sandbox.name, resources: { cpus: 1, memory: 512 }, env_vars: { GREETING: "hello" } },
  once: true,
  success: made("The new sandbox.", SandboxInfo, sandbox),
  failures: {
    ...sandboxLimit,
    ...repeated,
    ...noDisk,
    ...noImageHad,
  },
} satisfies OperationDocs;

export const list = {
  tag,
  name: "listSandboxes",
  summary: "List running sandboxes",
  description: "Those that run or are being made, newest first. All keys of the account see the same list.",
  query: { page: 1, page_size: 20 },
  success: ok("One page of sandboxes.", SandboxPage, pageOf(sandbox)),
  failures: {},
} satisfies OperationDocs;

export const find = {
  tag,
  name: "findSandboxes",
  summary: "Find sandboxes by name",
  description:
    "Those that run or are being made and that a name may mean: by their id, their name, or the beginning of their id. At most 100. Looking up has an allowance of its own, 600 calls a minute, and spends none of the tier's.",
  query: { name: sandbox.name },
  success: ok("Those that were found; none is no error.", FoundSandboxes, { data: [sandbox] }),
  failures: {},
} satisfies OperationDocs;

export const get = {
  tag,
  name: "getSandbox",
  summary: "Get one sandbox",
  of: "sandbox",
  success: ok("The sandbox, in whatever state.", SandboxInfo, sandbox),
  failures: noSandbox,
} satisfies OperationDocs;

export const remove = {
  tag,
  name: "deleteSandbox",
  summary: "Delete a sandbox",
  description: "Ends all that runs in it and removes its files. Streams of running commands end with an error line.",
  of: "sandbox",
  body: { create_snapshot: true, snapshot_name: "nightly-report-final" },
  success: ok("It is gone.", DeletedSandbox, {
    id: ids.sandbox,
    message: "Sandbox deleted",
    snapshot_created: true,
    snapshot_name: "nightly-report-final",
    storage_deleted: true,
  }),
  failures: { ...noSandbox, conflict: { when: "The sandbox is still being made.", message: "the sandbox is still being created" } },
} satisfies OperationDocs;

export const removeAll = {
  tag,
  name: "deleteAllSandboxes",
  summary: "Delete all sandboxes",
  description: "All of the account. Those that cannot be deleted are named in `errors`; the others are gone.",
  success: ok("What was deleted.", DeletedAll, { deleted_count: 1, deleted_ids: [ids.sandbox], message: "1 sandbox deleted" }),
  failures: {},
} satisfies OperationDocs;

export const status = {
  tag,
  name: "getSandboxStatus",
  summary: "Get resource usage",
  description: "What a sandbox uses now, and samples between `from` and `to`: of the last 24 hours where the call says nothing else.",
  of: "sandbox",
  query: { from: times.made, to: times.now },
  success: ok("Its use.", SandboxUsage, {
    sandbox_name: sandbox.name,
    timestamp: times.now,
    current: { cpu_percent: 12.5, memory_mb: 48.2, memory_percent: 9.4, disk_mb: 3.1, processes: 2 },
    history: [{ timestamp: times.began, cpu_percent: 80.1, memory_mb: 61.7 }],
  }),
  failures: { ...noSandbox, ...notRunning },
} satisfies OperationDocs;

export const logs = {
  tag,
  name: "listLogs",
  summary: "List what ran",
  description:
    "Executions of one sandbox or of all, newest first: of the last hour where the call says nothing else. Kept for 7 days, as far as a sandbox and an account may fill it; commands and outputs are cut at 4 KiB. Where there are more than a page holds, `next_cursor` is the `cursor` of the next one.",
  query: { sandbox_id: ids.sandbox, from: times.made, limit: 100 },
  success: ok("What ran.", Logs, {
    logs: [
      {
        request_id: ids.request,
        execution_id: ids.execution,
        sandbox_id: ids.sandbox,
        command: "echo $GREETING",
        source: "sync",
        status: "completed",
        exit_code: 0,
        execution_time_ms: 7,
        timestamp: times.began,
        stdout: "hello\n",
        stderr: "",
      },
    ],
    total: 1,
  }),
  failures: {},
} satisfies OperationDocs;
