/** A small Debian root file system as a tar archive, made by mmdebstrap. */
import { lstatSync } from "node:fs";
import { chmod, chown, mkdtemp, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { accountEnvironment, asAccount, inPodmanNamespace } from "../base/as-account.ts";
import type { Instance } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import type { Progress } from "../base/terminal.ts";
import { trustedPath } from "../base/trusted-path.mjs";
import type { Administrator } from "./administrator.ts";
import { aptProxy } from "./apt.ts";
import { findImageSources, sourceLine } from "./apt-sources.ts";

/** What a build needs in addition to the installation. */
export interface Builder {
  readonly administrator: Administrator;
  readonly signal: AbortSignal;
}

/** What a root file system contains in addition to a minimal Debian. */
export interface Recipe {
  readonly packages: readonly string[];
  /** Options of mmdebstrap that run commands in the new file system. */
  readonly hooks: readonly string[];
}

const packages = [
  ...["bash", "coreutils", "python3", "git", "curl", "procps", "ca-certificates", "xz-utils", "unzip"],
  // For interactive use.
  ...["less", "nano", "vim-tiny"],
];

/** Leaves out manuals and translations, which nobody reads in a sandbox; licenses are kept. */
const withoutDocuments = [
  "path-exclude=/usr/share/man/*",
  "path-exclude=/usr/share/info/*",
  "path-exclude=/usr/share/locale/*",
  "path-exclude=/usr/share/doc/*",
  "path-include=/usr/share/doc/*/copyright",
];

/** vim-tiny installs only the name `vi`. */
const hooks = ['--customize-hook=ln -s vi "$1/usr/bin/vim"'];

/** The recipe of the default image. */
export const defaultRecipe: Recipe = { packages, hooks };

/** Everything that the content of an image depends on, except the versions of its packages. */
export const contentsOf = (recipe: Recipe): readonly string[] => [...recipe.packages, ...withoutDocuments, ...recipe.hooks];

/** Ends the mounts and processes of a build when the build ends, for whatever reason. */
const contained = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];

/**
 * Writes the archive to `file`, readable by the account. Builds as root if that needs no password, which is faster; else in
 * a user namespace of the account.
 */
export async function buildRootFilesystem(instance: Instance, recipe: Recipe, file: string, builder: Builder, progress: Progress): Promise<void> {
  const { administrator, signal } = builder;
  const onLine = (line: string) => tellStage(line, progress);
  // Not in the data directory: apt and, without root, the builder itself run as users that cannot enter it.
  const prefix = `/var/tmp/sandgate-image-${basename(instance.runtimeDir)}-`;
  const options = { env: accountEnvironment(instance), cwd: "/" };
  const asRoot = await administrator.silent();
  const remove = async (folder: string) => {
    if (asRoot) await administrator.run("remove a build", ["rm", "-rf", "--one-file-system", folder], { always: true });
    else await succeeds(inPodmanNamespace(instance, ["rm", "-rf", folder]), options);
  };
  for (const folder of await abandoned(prefix, asRoot ? 0 : instance.account.uid)) await remove(folder);
  const workspace = await makeWorkspace(prefix, asRoot, administrator);
  try {
    const command = await mmdebstrap(instance, recipe, { mode: asRoot ? "root" : "unshare", workspace, file });
    if (asRoot) await administrator.run("build an image", [...contained, ...command], { onLine, killSignal: "SIGKILL" });
    else await run(asAccount(instance.account, command), { ...options, signal, onLine });
    if (process.getuid?.() === 0) await chown(trustedPath(file), instance.account.uid, instance.account.gid);
  } finally {
    await remove(workspace);
  }
}

/** Makes a folder with an unguessable name, owned by the user that builds in it. */
async function makeWorkspace(prefix: string, asRoot: boolean, administrator: Administrator): Promise<string> {
  // When built as root, apt's user only passes through it; in a user namespace the builder is not the user that made it.
  const make = `folder=$(mktemp -d ${prefix}XXXXXXXX) && chmod 0711 "$folder" && echo "$folder"`;
  // If this were stopped halfway, nobody would know which folder to remove.
  if (asRoot) return administrator.run("make a folder for a build", ["sh", "-c", make], { always: true });
  const workspace = await mkdtemp(prefix);
  await chmod(workspace, 0o1733);
  return workspace;
}

/** Folders left by builds that were killed. Anybody can create such a name, but only this user can own it. */
async function abandoned(prefix: string, uid: number): Promise<string[]> {
  const names = (await readdir(dirname(prefix))).filter((name) => name.startsWith(basename(prefix)));
  const paths = names.map((name) => join(dirname(prefix), name));
  return paths.filter((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isDirectory() && found.uid === uid;
  });
}

interface Places {
  readonly mode: "root" | "unshare";
  readonly workspace: string;
  readonly file: string;
}

async function mmdebstrap({ config }: Instance, { packages, hooks }: Recipe, { mode, workspace, file }: Places): Promise<string[]> {
  const { suite, archives } = await findImageSources(config);
  return [
    ...["env", `TMPDIR=${workspace}`, ...(await aptProxy())],
    ...["mmdebstrap", `--mode=${mode}`, "--variant=minbase", "--format=tar", `--include=${packages.join(",")}`],
    ...withoutDocuments.map((option) => `--dpkgopt=${option}`),
    ...hooks,
    ...[suite, file, ...archives.map(sourceLine)],
  ];
}

function tellStage(line: string, progress: Progress): void {
  const stage = /^I: ([^.:]+)\.\.\./.exec(line)?.[1];
  if (stage) progress.say(stage);
}
