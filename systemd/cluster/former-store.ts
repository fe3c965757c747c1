/** What the only server of an installation stored, until a cluster has all of it. */
import { existsSync } from "node:fs";
import { chown, mkdir, rename, rm } from "node:fs/promises";
import type { Instance } from "../base/instance.ts";

/** Puts it aside, with an empty store in its place. */
export async function putAside({ paths, accounts: { nats } }: Instance): Promise<void> {
  await takeUpAgain({ paths });
  await rename(paths.nats, paths.formerNats);
  await mkdir(paths.nats, { mode: 0o700 });
  await chown(paths.nats, nats.uid, nats.gid);
}

/** Takes it up again, if a cluster was not made completely. */
export async function takeUpAgain({ paths }: Pick<Instance, "paths">): Promise<void> {
  if (!existsSync(paths.formerNats)) return;
  await rm(paths.nats, { recursive: true, force: true });
  await rename(paths.formerNats, paths.nats);
}
