/** Which processes belong to the worker's sandboxes: those that have nothing but the ids of one range of its account. */
import { readFileSync } from "node:fs";
import { idsPerSandbox } from "../../../shared/privileged.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { statOf } from "../../../shared/util/proc.ts";
import type { Account } from "../../base/instance.ts";
import { type IdRange, idFiles, idRangesOf } from "../../base/subordinate-ids.ts";
import { Refusal } from "../refusal.ts";

/** An extent of a user namespace's map, as user_namespaces(7) has it. */
export interface Extent {
  readonly inside: number;
  readonly outside: number;
  readonly count: number;
}

/** A process of a sandbox. */
export interface SandboxProcess {
  readonly pid: number;
  /** In clock ticks since boot; tells it from a later process with the same number. */
  readonly startTime: string;
  readonly users: readonly Extent[];
  readonly groups: readonly Extent[];
}

export function extentsIn(map: string): Extent[] {
  const rows = map.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  return rows.flatMap(([inside, outside, count]) => (inside === undefined || outside === undefined || count === undefined ? [] : [{ inside, outside, count }]));
}

/** Whether a map has the ids of one sandbox, and none that is not the account's. */
export function isOfSandbox(extents: readonly Extent[], ranges: readonly IdRange[]): boolean {
  const total = extents.reduce((sum, { count }) => sum + count, 0);
  const isWithin = ({ outside, count }: Extent): boolean => ranges.some(({ first, count: all }) => outside >= first && outside + count <= first + all);
  return total === idsPerSandbox && extents.every(isWithin);
}

/**
 * The first process of a sandbox of this account.
 *
 * @throws {Refusal} for any other process: one of the host, of another account, or of the worker itself
 */
export function sandboxProcess(account: Pick<Account, "name" | "uid" | "gid">, pid: number): SandboxProcess {
  const read = (name: string): string => attempt(() => readFileSync(`/proc/${pid}/${name}`, "latin1")) ?? "";
  const [users, groups] = ["uid_map", "gid_map"].map((name) => extentsIn(read(name))) as [Extent[], Extent[]];
  const [userRanges, groupRanges] = [idFiles.user, idFiles.group].map((file) => idRangesOf(account, file)) as [IdRange[], IdRange[]];
  const isFirst = /^NSpid:.*\s1$/m.test(read("status"));
  if (!isFirst || !isOfSandbox(users, userRanges) || !isOfSandbox(groups, groupRanges))
    throw new Refusal("refused", `process ${pid} is not the first of a sandbox with ids of its own`);
  return { pid, startTime: startTimeOf(pid), users, groups };
}

/** Whether it is still that process. */
export const isStill = ({ pid, startTime }: SandboxProcess): boolean => startTimeOf(pid) === startTime;

const startTimeOf = (pid: number): string => statOf(pid)?.[19] ?? "";
