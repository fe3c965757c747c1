/** Calls about sandboxes. */
import { DeletedAll, DeletedSandbox, FoundSandboxes, SandboxInfo, SandboxPage } from "../../../shared/schemas/sandboxes.ts";
import { Logs, SandboxUsage } from "../../../shared/schemas/usage.ts";
import { ids, pageOf, sandbox, times } from "../examples.ts";
import { noDisk, noImageHad, notRunning, sandboxLimit } from "../failures.ts";
import { made, ok, operationsOf } from "../operation.ts";

const operation = operationsOf("Sandboxes");

export const create = operation({
  name: "createSandbox",
  summary: "Create a sandbox",
  description:
    "By default, a sandbox has 1 CPU, 512 MiB of memory, 5 GB of storage and `outbound` network access. It counts against the limit of the key that created it until it is deleted.",
  body: { image: "default", name: sandbox.name, resources: { cpus: 1, memory: 512 }, env_vars: { GREETING: "hello" } },
  once: true,
  success: made("The new sandbox.", SandboxInfo, sandbox),
  failures: {
    ...sandboxLimit,
    ...noDisk,
    ...noImageHad,
  },
});

export const list = operation({
  name: "listSandboxes",
  summary: "List running sandboxes",
  description: "Running sandboxes and those being created, newest first. All keys of the account see the same list.",
  query: { page: 1, page_size: 20 },
  success: ok("One page of sandboxes.", SandboxPage, pageOf(sandbox)),
});

export const find = operation({
  name: "findSandboxes",
  summary: "Find sandboxes by name",
  description:
    "Finds running sandboxes, and those being created, by id, name or the beginning of the id. At most 100 are returned. Lookups have a separate allowance of 600 calls a minute and do not count against the tier's limit.",
  query: { name: sandbox.name },
  success: ok("The matching sandboxes; the list may be empty.", FoundSandboxes, { data: [sandbox] }),
});

export const get = operation({
  name: "getSandbox",
  summary: "Get one sandbox",
  of: "sandbox",
  success: ok("The sandbox, in any state.", SandboxInfo, sandbox),
});

export const remove = operation({
  name: "deleteSandbox",
  summary: "Delete a sandbox",
  description: "Kills everything that runs in the sandbox and removes its files. Streams of running commands end with an error line.",
  of: "sandbox",
  body: { create_snapshot: true, snapshot_name: "nightly-report-final" },
  success: ok("The sandbox is deleted.", DeletedSandbox, {
    id: ids.sandbox,
    message: "Sandbox deleted",
    snapshot_created: true,
    snapshot_name: "nightly-report-final",
    storage_deleted: true,
  }),
  failures: { conflict: { when: "The sandbox is still being created.", message: "the sandbox is still being created" } },
});

export const removeAll = operation({
  name: "deleteAllSandboxes",
  summary: "Delete all sandboxes",
  description: "Deletes all sandboxes of the account. `errors` lists those that could not be deleted.",
  success: ok("The deleted sandboxes.", DeletedAll, { deleted_count: 1, deleted_ids: [ids.sandbox], message: "1 sandbox deleted" }),
});

export const status = operation({
  name: "getSandboxStatus",
  summary: "Get resource usage",
  description: "The current usage of a sandbox, and samples between `from` and `to`, by default of the last 24 hours.",
  of: "sandbox",
  query: { from: times.made, to: times.now },
  success: ok("The resource usage.", SandboxUsage, {
    sandbox_name: sandbox.name,
    timestamp: times.now,
    current: { cpu_percent: 12.5, memory_mb: 48.2, memory_percent: 9.4, disk_mb: 3.1, processes: 2 },
    history: [{ timestamp: times.began, cpu_percent: 80.1, memory_mb: 61.7 }],
  }),
  failures: notRunning,
});

export const logs = operation({
  name: "listLogs",
  summary: "List executions",
  description:
    "Executions of one sandbox or of all, newest first, by default of the last hour. They are kept for 7 days, within size limits per sandbox and account; commands and output are cut at 4 KiB. If there are more than fit on a page, pass `next_cursor` as the `cursor` of the next call.",
  query: { sandbox_id: ids.sandbox, from: times.made, limit: 100 },
  success: ok("The executions.", Logs, {
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
});
