/** Whether this machine can boot others. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../systemd/base/failure.ts";
import { run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { readIfThere } from "../../systemd/base/write-file.ts";
import { groupsMount, inNamespaces } from "./namespaces.ts";

/** What takes rights that root of a container may lack. Each is tried in a folder and namespaces that go. */
const trials: Readonly<Record<string, string>> = {
  "mount an overlay": "mkdir lower upper work root && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root",
  "make a device": "mknod null c 1 3 && : > null",
  "mount cgroup v2": "mkdir groups && mount -t cgroup2 cgroup2 groups",
  "make a control group": 'mkdir "$GROUP" && rmdir "$GROUP"',
  "use a loop device": 'truncate -s 1M image && losetup --find --show image > loop && losetup --detach "$(cat loop)"',
};

/** @returns why not; undefined when it can */
export async function whyNotBootable(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "only root can boot machines";
  if (!/^ID="?debian"?$/m.test((await readIfThere("/etc/os-release")) ?? "")) return "they are made of Debian's packages, and this machine gets others";
  const groups = groupsMount();
  if (groups === undefined) return "this machine has no cgroup v2";
  const env = { PATH: searchPath, GROUP: join(groups, `sandgate-test-${process.pid}-trial`) };
  const folder = mkdtempSync(join(tmpdir(), "bootable-"));
  try {
    for (const [what, trial] of Object.entries(trials)) {
      const failure = await run([...inNamespaces, "sh", "-euc", trial], { cwd: folder, env }).then(() => undefined, messageOf);
      if (failure !== undefined) return `root of this machine cannot ${what}: ${failure.trim().split("\n").at(-1)}`;
    }
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
