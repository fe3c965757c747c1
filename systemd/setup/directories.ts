/** The data directory. What the parts write belongs to the account, what the supervisor relies on does not. */
import { chmod, chown, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { asAccount } from "../as-account.ts";
import { messageOf, StartFailure } from "../failure.ts";
import type { Instance } from "../instance.ts";
import { succeeds } from "../run.ts";
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

function directoriesOf({ account, paths, home }: Instance): Directory[] {
  const { uid, gid } = account;
  const own = (path: string) => ({ path, uid, gid, mode: 0o700 });
  const ours = (path: string, mode: number) => ({ path, uid: process.getuid?.() ?? uid, gid, mode });
  return [
    ours(paths.data, 0o710),
    ours(paths.supervisor, 0o700),
    ours(paths.logs, 0o700),
    ours(paths.temporary, 0o710),
    ours(paths.podman, 0o750),
    ...["worker", "gateway"].map((part) => own(join(paths.data, part))),
    own(paths.nats),
    own(paths.storage),
    own(paths.imageTemporary),
    ...(home.startsWith(paths.data) ? [own(home)] : []),
  ];
}

async function isAsWanted({ path, uid, gid, mode }: Directory): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && found.uid === uid && found.gid === gid && (found.mode & 0o777) === mode;
}

async function make({ path, uid, gid, mode }: Directory): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
    await chown(path, uid, gid);
    await chmod(path, mode);
  } catch (error) {
    throw new StartFailure(`The data directory cannot be made (SANDGATE_DATA_DIR, SANDGATE_STORAGE_DIR): ${messageOf(error)}`);
  }
}

/** Layers written under one account's ids are useless to another account. */
async function refuseForeignStorage({ account, paths }: Instance): Promise<void> {
  const found = await stat(paths.storage).catch(() => undefined);
  const fresh = found === undefined || found.uid === account.uid || !(await stat(join(paths.storage, "storage")).catch(() => undefined));
  if (!fresh) {
    throw new StartFailure(`${paths.storage} belongs to user ${found.uid}, not to ${account.name}: start as before, or set SANDGATE_DATA_DIR`);
  }
}

/** @throws {StartFailure} when a folder above the data directory keeps the account out. */
export async function checkReach({ account, paths }: Instance): Promise<void> {
  for (const path of [paths.nats, paths.storage]) {
    if (await succeeds(asAccount(account, ["test", "-w", path]))) continue;
    throw new StartFailure(`The user ${account.name} cannot reach ${path}: choose another SANDGATE_DATA_DIR or open the folders above it`);
  }
}
