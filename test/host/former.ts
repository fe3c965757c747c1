/** A former version of the project, out of its own history, from which a machine is upgraded. */
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { appDir } from "../../shared/programs.mjs";
import { run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { type InstalledMachine, programDir } from "./installed.ts";

/** Where a machine has the checkout of the former version. */
const formerDir = "/opt/former";

/** What a machine has of a former version. */
interface Former {
  /** The commit, when it was made, and what it says. */
  readonly name: string;
  /** Its installer. */
  readonly install: string;
  /** Its exec server, and undefined where that could not be made. */
  readonly server: string | undefined;
}

/**
 * Gives a machine a former version: the oldest one that runs with the packages of this one, since the machine reaches nobody to get
 * others from. So it stays as far back as it can be tested while the project goes on.
 *
 * @returns undefined when this is no checkout with a history
 */
export async function giveFormer(machine: InstalledMachine): Promise<Former | undefined> {
  const commit = await git("log", "-1", "--format=%H", "--", "package-lock.json").catch(() => "");
  if (commit === "") return undefined;
  const { path } = fixture(temporaryFolder("former", 0o755));
  const [tree, archive] = [join(path, "tree"), join(path, "former.tar")];
  await git("archive", "--prefix=tree/", `--output=${archive}`, commit);
  await run(["tar", "-xf", archive, "-C", path], { cwd: "/" });
  const given = await machine.give(archive);
  await machine.shell(`mkdir ${formerDir}; tar -xf ${given} -C ${formerDir} --strip-components=1; rm ${given}
    mkdir ${formerDir}/node_modules; mount --bind ${programDir}/node_modules ${formerDir}/node_modules`);
  symlinkSync(join(appDir, "node_modules"), join(tree, "node_modules"));
  return { name: await git("log", "-1", "--format=%h of %ci: %s", commit), install: join(formerDir, "systemd/install"), server: await makeServer(tree) };
}

async function makeServer(tree: string): Promise<string | undefined> {
  const { TEST_APP = "" } = process.env;
  const made = await run([join(appDir, "node_modules/.bin/tsx"), join(appDir, "test/host/former-server.ts"), tree], {
    env: { PATH: searchPath, TEST_APP },
    cwd: "/",
  });
  return made.trim().split("\n").at(-1) || undefined;
}

const git = (...args: string[]): Promise<string> => run(["git", ...args], { cwd: appDir });
