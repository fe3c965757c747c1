/** The user and group ids that an account may use inside its containers (subuid(5), subgid(5)). */
import { readFile } from "node:fs/promises";
import type { Account } from "../base/instance.ts";
import type { Administrator } from "./administrator.ts";
import type { Step } from "./step.ts";

interface Range {
  readonly owner: string;
  readonly first: number;
  readonly count: number;
}

const files = { user: "/etc/subuid", group: "/etc/subgid" };
const size = 65_536;
const lowest = 100_000;

/** Gives the account 65536 ids of its own of each kind. */
export function subordinateIds(account: Account, administrator: Administrator): Step {
  return {
    title: "Assigning user and group ids for containers",
    lacks: async () => ((await kindsMissing(account)).length > 0 ? account.name : undefined),
    provide: async () => {
      const kinds = await kindsMissing(account);
      const first = nextFree([...(await readRanges(files.user)), ...(await readRanges(files.group))]);
      const range = `${first}-${first + size - 1}`;
      const options = kinds.flatMap((kind) => [kind === "user" ? "--add-subuids" : "--add-subgids", range]);
      await administrator.run("assign ids for containers", ["usermod", ...options, account.name]);
    },
  };
}

/** The first id of a block that overlaps no assigned range. */
export function nextFree(ranges: readonly Range[]): number {
  const end = Math.max(lowest, ...ranges.map((range) => range.first + range.count));
  const block = Math.ceil((end - lowest) / size);
  return lowest + block * size;
}

async function kindsMissing(account: Account): Promise<("user" | "group")[]> {
  const has = async (file: string) =>
    (await readRanges(file)).some(({ owner, count }) => (owner === account.name || owner === String(account.uid)) && count >= size);
  const missing: ("user" | "group")[] = [];
  if (!(await has(files.user))) missing.push("user");
  if (!(await has(files.group))) missing.push("group");
  return missing;
}

async function readRanges(file: string): Promise<Range[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [owner = "", first, count] = line.trim().split(":");
    return count === undefined ? [] : [{ owner, first: Number(first), count: Number(count) }];
  });
}
