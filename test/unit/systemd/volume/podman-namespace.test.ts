/** Root mounts the volume in a namespace where the worker's user rules, on whom it must not depend. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mountAt } from "../../../../shared/util/mounts.ts";
import { asAccount } from "../../../../systemd/base/as-account.ts";
import { run } from "../../../../systemd/base/run.ts";
import { searchPath } from "../../../../systemd/base/search-path.mjs";
import { showIn } from "../../../../systemd/volume/podman-namespace.ts";
import { isVolume } from "../../../../systemd/volume/volume.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testInstance } from "../../../helpers/prepare.ts";
import { until } from "../../../helpers/until.ts";
import { TestVolume } from "../../../helpers/volume.ts";

const folder = fixture(temporaryFolder("namespace", 0o711));
const instance = await testInstance(join(folder.path, "data"), {});
const { found } = await fixture(TestVolume.make(instance, join(instance.paths.data, "one")));
const { dir } = isVolume(found) ? found : assert.fail(found.reason);
const { account } = instance;

interface Namespace extends AsyncDisposable {
  readonly pid: number;
}

/** A user namespace with mounts of its own, in which `prepare` has run, and the volume is not mounted. */
async function namespaceOf(owner: { uid: number; gid: number }, prepare: string): Promise<Namespace> {
  const script = `umount -l "$1" 2>/dev/null; ${prepare}; echo ready; exec sleep 1000`;
  const inner = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", dir];
  // Its parent's mounts are locked in it, so the volume is hidden from it before.
  const hidden = ["unshare", "--mount", "sh", "-c", 'umount -l "$1" && shift && exec "$@"', "sh", dir, ...asAccount(owner, inner)];
  const [file = "", ...args] = hidden;
  const child = spawn(file, args, { cwd: "/", env: { PATH: searchPath }, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (bytes: Buffer) => (said += bytes));
  await until("the namespace is there", () => said.includes("ready"));
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { pid: child.pid ?? assert.fail(), [Symbol.asyncDispose]: end };
}

const show = (pid: number): Promise<string> => run(showIn(pid, account, dir), { cwd: "/" });

test("the volume is mounted in a namespace of the account that is older than it, with the same restrictions", async () => {
  await using namespace = await namespaceOf(account, "true");
  assert.equal(mountAt(dir, namespace.pid), undefined);
  await show(namespace.pid);
  const [inside, outside] = [mountAt(dir, namespace.pid), mountAt(dir)];
  assert.equal(inside?.device, outside?.device);
  for (const option of ["nosuid", "nodev"]) assert.ok(inside?.options.includes(option), option);
});

test("root runs nothing and reads nothing of what the user has put into it", async () => {
  const marker = join(folder.path, "ran-as-root");
  const trap = join(folder.path, "trap");
  writeFileSync(trap, `#!/bin/sh\nid -u > ${marker}\n`, { mode: 0o755 });
  // The user's own programs and libraries at the paths of the system's.
  const plant = `for name in /usr/bin/perl /usr/bin/mount /usr/bin/umount /bin/sh; do mount --bind ${trap} $name; done; mount -t tmpfs none /etc`;
  await using namespace = await namespaceOf(account, plant);
  await show(namespace.pid);
  assert.equal(mountAt(dir, namespace.pid)?.device, mountAt(dir)?.device);
  assert.ok(!existsSync(marker));
});

test("a link at its place is not followed", async () => {
  await using namespace = await namespaceOf(account, `mount -t tmpfs none "$(dirname "$1")" && ln -s /etc "$1"`);
  await assert.rejects(show(namespace.pid), /cannot be mounted in it/);
  assert.equal(mountAt("/etc", namespace.pid), undefined);
});

test("a namespace of somebody else is left alone: root's, and that of another user", async () => {
  await assert.rejects(show(process.pid), /belongs to another user/);
  await using namespace = await namespaceOf({ uid: 65_534, gid: 65_534 }, "true");
  await assert.rejects(show(namespace.pid), /belongs to another user/);
  assert.equal(mountAt(dir, namespace.pid), undefined);
});
