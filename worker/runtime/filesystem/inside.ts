/** Work on the files of a sandbox from outside, where its links must not lead anywhere else. */
import { chownSync, closeSync, constants, fstatSync, mkdirSync, openSync } from "node:fs";
import { SandgateError } from "../../../shared/errors.ts";
import { openInside } from "../../../shared/util/libc.ts";

const superuser = { uid: 0, gid: 0 };
/** What Podman reads before it starts a container. */
const readByPodman = ["etc/passwd", "etc/group"];

/**
 * Refuses a root that would keep whoever starts a container on it waiting for ever: a pipe tells nothing until somebody writes to it.
 *
 * @throws {SandgateError} `unprocessable`
 */
export function refusePipes(root: string): void {
  const rootFd = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    for (const path of readByPodman) {
      const found = openInside(rootFd, path);
      if (found === undefined) continue;
      const isPipe = fstatSync(found).isFIFO();
      closeSync(found);
      if (isPipe) throw new SandgateError("unprocessable", `the sandbox cannot be started: /${path} is a pipe`, { reason: "not_a_file" });
    }
  } finally {
    closeSync(rootFd);
  }
}

/** Makes a folder, and those above it, unless it is there or something else is in the way. @param path as seen in the sandbox @param firstId what its root's id is here */
export function makeFolderInside(root: string, path: string, owner = superuser, firstId = 0): void {
  const steps = path.split("/").filter(Boolean);
  if (steps.length === 0) return;
  const rootFd = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
  let parent = rootFd;
  try {
    for (const [index, name] of steps.entries()) {
      const here = steps.slice(0, index + 1).join("/");
      const isLast = index === steps.length - 1;
      const made = openInside(rootFd, here) ?? makeIn(parent, name, ownerFrom(firstId, isLast ? owner : superuser), () => openInside(rootFd, here));
      if (parent !== rootFd) closeSync(parent);
      parent = rootFd;
      if (made === undefined) return;
      parent = made;
    }
  } finally {
    if (parent !== rootFd) closeSync(parent);
    closeSync(rootFd);
  }
}

const ownerFrom = (firstId: number, { uid, gid }: typeof superuser): typeof superuser => ({ uid: firstId + uid, gid: firstId + gid });

function makeIn(parent: number, name: string, { uid, gid }: typeof superuser, open: () => number | undefined): number | undefined {
  const dir = `/proc/self/fd/${parent}/${name}`;
  try {
    mkdirSync(dir, { mode: 0o755 });
    chownSync(dir, uid, gid);
  } catch {
    return undefined; // A link to nothing, or a file. A command is told that its working directory is not there.
  }
  return open();
}
