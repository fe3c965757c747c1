/** The version of a package, by which apt knows which of two is the newer one. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { run } from "../base/run.ts";
import { findProgram } from "../setup/programs.ts";

const hashDigits = 10;

/**
 * The version of a release and the commit that it was made from: its day, how many commits there are, which tells those of a day
 * apart, and its hash. Where there is no history, it is the version alone.
 *
 * @param folder the checkout
 */
export async function versionOf(folder: string, version: string): Promise<string> {
  if (!existsSync(join(folder, ".git")) || !findProgram("git")) return version;
  // It may be another user's, and nothing of it is run.
  const git = (...args: string[]): Promise<string> => run(["git", "-c", `safe.directory=${folder}`, "-C", folder, ...args]);
  const count = await git("rev-list", "--count", "HEAD");
  const [day, hash] = (await git("log", "-1", `--abbrev=${hashDigits}`, "--format=%cs %h")).split(" ");
  return `${version}+git${day?.replaceAll("-", "")}.${count}.${hash}`;
}
