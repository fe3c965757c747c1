/** The data directory. Folders that a part writes to belong to its account; folders that the supervisor relies on do not. */
import { chmod, chown, lstat, mkdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { asAccount } from "../base/as-account.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import type { Account, Instance } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import { isTrusted, trustedPath, UntrustedPath } from "../base/trusted-path.mjs";
import type { Step } from "./step.ts";

interface Directory {
  readonly path: string;
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** All folders, with their owners and modes. */
export function dataDirectories(instance: Instance): Step {
  const wanted = directoriesOf(instance);
  return {
    title: "Preparing the data directory",
    lacks: async () => {
      await refuseForeignStorage(instance);
      for (const directory of wanted) if (!(await isAsWanted(directory))) return directory.path;
      return undefined;
    },
    provide: async () => {
      for (const directory of wanted) await make(directory);
    },
  };
}

/** In the order in which they are made. */
export function directoriesOf({ account, accounts, paths, home }: Instance): Directory[] {
  const own = (path: string, { uid, gid }: Pick<Account, "uid" | "gid"> = account, mode = 0o700) => ({ path, uid, gid, mode });
  const ours = (path: string, mode: number) => ({ path, uid: process.getuid?.() ?? account.uid, gid: account.gid, mode });
  return [
    // The accounts of all parts pass through these two; their contents have restrictive modes of their own.
    ours(paths.data, 0o711),
    ours(paths.secrets, 0o711),
    ours(paths.supervisor, 0o700),
    ours(paths.secrets, 0o711),
    ours(paths.logs, 0o700),
    ours(paths.temporary, 0o710),
    ours(paths.podman, 0o750),
    own(join(paths.data, "worker")),
    own(paths.gateway, accounts.gateway),
    own(paths.nats, accounts.nats),
    own(paths.lines, { uid: accounts.gateway.uid, gid: account.gid }, 0o710),
    // Podman 5 mounts the root of a container there for a moment, whose user has ids of its own and passes through. What Podman keeps is in a folder that nobody else enters.
    own(paths.storage, account, 0o711),
    own(paths.imageTemporary, account, 0o711),
    ...(home.startsWith(paths.data) ? [own(home)] : []),
  ];
}

async function isAsWanted({ path, uid, gid, mode }: Directory): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && found.uid === uid && found.gid === gid && (found.mode & 0o777) === mode;
}

async function make(directory: Directory): Promise<void> {
  try {
    if (isInOwnersHands(directory)) await makeAsOwner(directory);
    else await makeOurselves(directory);
  } catch (error) {
    throw new StartFailure(`The data directory cannot be made (SANDGATE_DATA_DIR, SANDGATE_STORAGE_DIR): ${messageOf(error)}`);
  }
}

/** Whether the future owner, who is less trusted than this process, already controls where the path leads. */
function isInOwnersHands({ path, uid }: Directory): boolean {
  try {
    trustedPath(path);
    return false;
  } catch (error) {
    return error instanceof UntrustedPath && error.uid === uid && !isTrusted(uid);
  }
}

/** Runs with only the owner's rights, so a link planted by the owner gains nothing. */
async function makeAsOwner({ path, uid, gid, mode }: Directory): Promise<void> {
  await run(asAccount({ uid, gid }, ["install", "-d", "-m", mode.toString(8), "-g", String(gid), path]), { cwd: "/" });
}

/** The parent must be writable by trusted users only, so that the path means the same from one step to the next. */
async function makeOurselves({ path, uid, gid, mode }: Directory): Promise<void> {
  const parent = trustedPath(dirname(path), { make: 0o755 });
  const own = join(parent, basename(path));
  await mkdir(own, 0o700).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(own);
  // A folder for this process must not have belonged to another user, who could have planted files in it. And in a folder
  // such as /tmp, its owner could replace it at any time.
  const mayBeAnothers = found.isDirectory() && !isTrusted(uid) && ((await lstat(parent)).mode & 0o1000) === 0;
  const real = mayBeAnothers ? own : trustedPath(own);
  await chown(real, uid, gid);
  await chmod(real, mode);
}

/** Layers written under one account's ids are useless to another account. */
async function refuseForeignStorage({ account, paths }: Instance): Promise<void> {
  const found = await stat(paths.storage).catch(() => undefined);
  const fresh = found === undefined || found.uid === account.uid || !(await stat(join(paths.storage, "storage")).catch(() => undefined));
  if (!fresh) {
    throw new StartFailure(`${paths.storage} belongs to user ${found.uid}, not to ${account.name}: start as before, or set SANDGATE_DATA_DIR`);
  }
}

/** @throws {StartFailure} if an account cannot enter a folder above the data directory. */
export async function checkReach({ accounts, paths }: Instance): Promise<void> {
  const places = [
    { account: accounts.nats, path: paths.nats },
    { account: accounts.gateway, path: paths.gateway },
    { account: accounts.worker, path: paths.storage },
  ];
  for (const { account, path } of places) {
    if (await succeeds(asAccount(account, ["test", "-w", path]))) continue;
    throw new StartFailure(`The user ${account.name} cannot reach ${path}: choose another SANDGATE_DATA_DIR or open the folders above it`);
  }
}
