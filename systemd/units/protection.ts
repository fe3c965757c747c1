/**
 * Keeps all sandboxes together from taking the machine: bounds for the slice of the worker's account, in which they run with
 * their worker. Each sandbox has limits of its own besides.
 */
import { totalmem } from "node:os";
import type { Config } from "../../shared/config.ts";
import type { Account } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";

/** A fifth of what services and users have by default. It counts only while a CPU or a disk is wanted by more than one. */
const weight = "20";

const sliceOf = ({ uid }: Pick<Account, "uid">): string => `user-${uid}.slice`;

/** Lasts until the machine restarts. */
export async function protectHost(account: Pick<Account, "uid">, { memoryFloorBytes }: Pick<Config, "memoryFloorBytes">): Promise<void> {
  const bounds = { CPUWeight: weight, IOWeight: weight, MemoryMax: String(totalmem() - memoryFloorBytes) };
  const properties = Object.entries(bounds).map(([name, value]) => `${name}=${value}`);
  await run(["systemctl", "set-property", "--runtime", sliceOf(account), ...properties]);
}

export const unprotectHost = (account: Pick<Account, "uid">): Promise<boolean> => succeeds(["systemctl", "revert", sliceOf(account)], { cwd: "/" });
