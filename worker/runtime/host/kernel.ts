/** What the kernel lets this user do: network filters, limits on shared memory, and its own resource limits. */
import { readFileSync } from "node:fs";
import { sandboxDefaults } from "../../../shared/schemas/sandboxes.ts";
import { nftRules } from "../network/network.ts";
import { ipcBounds } from "../podman/isolation.ts";
import { run } from "../process/run.ts";
import { probeTimeoutMs } from "./programs.ts";

/** Whether nftables works in a network namespace of ours. */
export async function filterKind(): Promise<"nft" | "routes"> {
  const rules = nftRules(["192.0.2.1"], "used");
  const result = await run("unshare", ["--net", "--", "nft", "-f", "-"], { timeoutMs: probeTimeoutMs, input: rules });
  return result.exitCode === 0 ? "nft" : "routes";
}

/** Since Linux 6.9, root of a user namespace may set the limits of its own IPC namespaces. */
export async function hasIpcBounds(pageBytes: number): Promise<boolean> {
  const bounds = Object.entries(ipcBounds(sandboxDefaults.memoryMiB, pageBytes)).flatMap(([name, value]) => [`/proc/sys/${name.replaceAll(".", "/")}`, value]);
  const script = 'while [ $# -gt 0 ]; do echo "$2" > "$1" || exit 1; shift 2; done';
  const result = await run("unshare", ["--ipc", "--", "/bin/sh", "-c", script, "sh", ...bounds], { timeoutMs: probeTimeoutMs });
  return result.exitCode === 0;
}

/** The hard limit of this process, by its name in /proc/self/limits. */
export function hardLimit(name: string): number {
  const line =
    readFileSync("/proc/self/limits", "utf8")
      .split("\n")
      .find((entry) => entry.startsWith(name)) ?? "";
  const hard = line.slice(name.length).trim().split(/\s+/)[1];
  return hard === undefined || hard === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(hard);
}
