/** The user and group ids that an account may use inside its containers (subuid(5), subgid(5)). */

import type { Config } from "../../shared/config.ts";
import { idsPerSandbox } from "../../shared/privileged.ts";
import type { Account } from "../base/instance.ts";
import { type IdRange, idFiles, idRangesOf, readIdRanges } from "../base/subordinate-ids.ts";
import type { Administrator } from "./administrator.ts";
import type { Step } from "./step.ts";

const lowest = 100_000;
/** Between what systemd gives to containers and what it uses itself (https://systemd.io/UIDS-GIDS/), and above what useradd assigns. */
const forSandboxes = { first: 0x7000_0000, end: 0x7ffe_0000 };
/** Containers that are started while others are removed. */
const spareRanges = 16;

/** Gives the account 65536 ids of its own of each kind. */
export function subordinateIds(account: Account, administrator: Administrator): Step {
  return {
    title: "Assigning user and group ids for containers",
    lacks: async () => (kindsMissing(account).length > 0 ? account.name : undefined),
    provide: async () => {
      const kinds = kindsMissing(account);
      await assign(account, administrator, kinds, nextFree(allRanges()), idsPerSandbox);
    },
  };
}

/**
 * Adds ids to those that the account has, so that every sandbox can have its own. Those it has keep their meaning, because Podman
 * counts all of them in the order of the files. Does nothing where that needs a password, or where no ids are left.
 *
 * @returns whether there are more than before
 */
export async function sandboxIds(account: Account, config: Config, administrator: Administrator): Promise<boolean> {
  if (config.userIds === "shared" || !(await administrator.unattended())) return false;
  const wanted = (config.sandboxesMax + config.poolSize + spareRanges) * idsPerSandbox;
  const owned = [idFiles.user, idFiles.group].map((file) => idRangesOf(account, file));
  const [users, groups] = owned.map((ranges) => ranges.slice(1).reduce((sum, { count }) => sum + count, 0)) as [number, number];
  const first = users === groups ? firstGap(allRanges(), wanted - users) : undefined;
  if (users >= wanted || first === undefined) return false;
  await assign(account, administrator, ["user", "group"], first, wanted - users);
  return true;
}

type Kind = keyof typeof idFiles;

async function assign(account: Account, administrator: Administrator, kinds: readonly Kind[], first: number, count: number): Promise<void> {
  const range = `${first}-${first + count - 1}`;
  const options = kinds.flatMap((kind) => [kind === "user" ? "--add-subuids" : "--add-subgids", range]);
  await administrator.run("assign ids for containers", ["usermod", ...options, account.name]);
}

/** The first id of a block that overlaps no assigned range below those for sandboxes. */
export function nextFree(ranges: readonly IdRange[]): number {
  const ends = ranges.map((range) => range.first + range.count).filter((end) => end <= forSandboxes.first);
  const block = Math.ceil((Math.max(lowest, ...ends) - lowest) / idsPerSandbox);
  return lowest + block * idsPerSandbox;
}

/** The first of `count` ids for sandboxes that nobody has. */
export function firstGap(ranges: readonly IdRange[], count: number): number | undefined {
  let first = forSandboxes.first;
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    if (range.first >= first + count) break;
    first = Math.max(first, range.first + range.count);
  }
  return first + count <= forSandboxes.end ? first : undefined;
}

const allRanges = (): IdRange[] => [...readIdRanges(idFiles.user), ...readIdRanges(idFiles.group)];

const kindsMissing = (account: Account): Kind[] =>
  (["user", "group"] as const).filter((kind) => !idRangesOf(account, idFiles[kind]).some(({ count }) => count >= idsPerSandbox));
