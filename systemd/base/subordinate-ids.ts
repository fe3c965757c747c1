/** Ranges of subordinate ids, as subuid(5) and subgid(5) list them, and those of them that are for one sandbox each. */
import { readFileSync } from "node:fs";
import { idsPerSandbox } from "../../shared/privileged.ts";
import type { Account } from "./instance.ts";

export interface IdRange {
  readonly owner: string;
  readonly first: number;
  readonly count: number;
}

export const idFiles = { user: "/etc/subuid", group: "/etc/subgid" } as const;

export function readIdRanges(file: string): IdRange[] {
  const text = readIfThere(file);
  return text.split("\n").flatMap((line) => {
    const [owner = "", first, count] = line.trim().split(":");
    return count === undefined ? [] : [{ owner, first: Number(first), count: Number(count) }];
  });
}

export const idRangesOf = ({ name, uid }: Pick<Account, "name" | "uid">, file: string): IdRange[] =>
  readIdRanges(file).filter(({ owner }) => owner === name || owner === String(uid));

/**
 * The map of an id-mapped mount, as uid_map(5) has it: which ids of the host the ids on disk become. What root of a sandbox and its
 * users own on disk has the ids of Podman's namespace, in which all of them used to be; in the mount they are those of the range.
 *
 * The last line is for the file system that the worker mounts over it: it works with the worker's own rights, so the worker's id
 * must stand for something on disk. It gets one of its own that no sandbox with a range has.
 *
 * @param own the account's own id
 * @param index which range; undefined is returned if the account has no such range
 */
export function mapOfRange(own: number, ranges: readonly IdRange[], index: number): string | undefined {
  const [shared] = ranges;
  const first = shared && shared.count >= idsPerSandbox ? firstOf(ranges, idsPerSandbox * (index + 1)) : undefined;
  if (!shared || first === undefined) return undefined;
  const others = idsPerSandbox - 1;
  return [`${own} ${first} 1`, `${shared.first} ${first + 1} ${others}`, `${shared.first + others} ${own} 1`].join("\n");
}

/** The first id of a sandbox's range, `skipped` ids after the first of all; undefined if it is not whole in one of them. */
function firstOf(ranges: readonly IdRange[], skipped: number): number | undefined {
  let before = 0;
  for (const { first, count } of ranges) {
    const at = skipped - before;
    if (at < count) return at + idsPerSandbox <= count ? first + at : undefined;
    before += count;
  }
  return undefined;
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
