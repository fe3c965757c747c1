/** File systems that are full for a while. */
import { setTimeout as sleep } from "node:timers/promises";
import type { SmallFileSystem } from "../helpers/small-disk.ts";
import type { Fault } from "./adversary.ts";
import { between } from "./plan.ts";

const MiB = 1024 ** 2;
const fullMs = { least: 1_000, most: 8_000 };

/** Without space, with a little, and without inodes. @param what they are for */
export function fullFor(what: string, files: SmallFileSystem): Fault[] {
  const kinds = { space: () => files.fill(), "space but 1 MiB": () => files.fill(MiB), inodes: () => files.fillInodes() };
  return Object.entries(kinds).map(([kind, fill]) => ({
    name: `no ${kind} for ${what}`,
    cause: async (random) => {
      await fill();
      try {
        await sleep(between(random, fullMs.least, fullMs.most));
      } finally {
        await files.empty();
      }
    },
  }));
}
