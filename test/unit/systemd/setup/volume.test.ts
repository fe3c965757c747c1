/** The volume is made, found again however the last run has ended, and refused with a reason; on real loop devices. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { mountAt } from "../../../../shared/util/mounts.ts";
import { asAccount } from "../../../../systemd/base/as-account.ts";
import { StartFailure } from "../../../../systemd/base/failure.ts";
import type { Instance } from "../../../../systemd/base/instance.ts";
import { run } from "../../../../systemd/base/run.ts";
import { Terminal } from "../../../../systemd/base/terminal.ts";
import { createAdministrator } from "../../../../systemd/setup/administrator.ts";
import { prepareVolume } from "../../../../systemd/setup/volume.ts";
import { unmount } from "../../../../systemd/volume/unmount.ts";
import { fileSystemBytes, isVolume, type Volume } from "../../../../systemd/volume/volume.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testInstance } from "../../../helpers/prepare.ts";
import { until } from "../../../helpers/until.ts";
import { freeVolume, loopFiles, releaseVolume } from "../../../helpers/volume.ts";

const GiB = 1024 ** 3;
const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
const folder = fixture(temporaryFolder("volume", 0o711));
const instance = await testInstance(join(folder.path, "data"), {});
afterEach(() => freeVolume(instance.paths));

const prepare = (config: Partial<Instance["config"]> = {}) => prepareVolume({ ...instance, config: { ...instance.config, ...config } }, administrator);
async function prepared(): Promise<Volume> {
  const found = await prepare();
  assert.ok(isVolume(found), JSON.stringify(found));
  return found;
}
const asWorker = (...argv: string[]): Promise<string> => run(asAccount(instance.account, argv), { cwd: "/" });

test("it is made, mounted with what the worker needs, and belongs to the worker; its file to root", async () => {
  const { dir } = await prepared();
  const { uid } = instance.account;
  const mount = mountAt(dir);
  assert.equal(mount?.type, "btrfs");
  const options = [...(mount?.options ?? []), ...(mount?.systemOptions ?? [])];
  for (const option of ["user_subvol_rm_allowed", "noatime", "nosuid", "nodev", "discard=async"]) assert.ok(options.includes(option), option);
  assert.deepEqual([statSync(dir).uid, statSync(dir).mode & 0o7777], [uid, 0o700]);
  const { uid: owner, mode, size, blocks } = statSync(instance.paths.volumeImage);
  assert.deepEqual([owner, mode & 0o7777, size], [0, 0o600, 4 * GiB]);
  assert.ok(blocks * 512 < 0.1 * GiB, "it is sparse");
  assert.ok(!existsSync(`${instance.paths.volumeImage}.partial`));
});

test("the worker makes subvolumes and deletes them; their limits hold, and stay exact after large deletions", async () => {
  const { dir } = await prepared();
  const sandbox = join(dir, "sandbox");
  await asWorker("btrfs", "subvolume", "create", sandbox);
  await run(["btrfs", "qgroup", "limit", String(8 * 1024 ** 2), sandbox]);
  await assert.rejects(asWorker("dd", "if=/dev/zero", `of=${sandbox}/file`, "bs=1M", "count=20", "conv=fsync"), /quota/i);
  await asWorker("btrfs", "subvolume", "delete", sandbox);
  const groups = readdirSync("/sys/fs/btrfs").find((name) => existsSync(join("/sys/fs/btrfs", name, "devices", (mountAt(dir)?.source ?? "").slice(5))));
  const levels = join("/sys/fs/btrfs", groups ?? "", "qgroups/drop_subtree_threshold");
  if (existsSync(levels)) assert.equal(readFileSync(levels, "utf8").trim(), "8");
});

test("counts that an older kernel has kept of deleted subvolumes are forgotten, and a start while one is being deleted goes on", async () => {
  const { dir } = await prepared();
  const sandbox = join(dir, "sandbox");
  await asWorker("btrfs", "subvolume", "create", sandbox);
  await asWorker("sh", "-c", 'for i in $(seq 500); do head -c 9000 /dev/zero > "$1/$i"; done', "sh", sandbox);
  await asWorker("btrfs", "subvolume", "delete", sandbox);
  await prepared();
  const ran: string[] = [];
  const older = async (why: string, argv: readonly string[]): Promise<string> => {
    if (argv[1] !== "qgroup") return administrator.run(why, argv);
    ran.push(argv.join(" "));
    return "Qgroupid    Referenced    Exclusive   Path\n--------    ----------    ---------   ----\n0/5 16.00KiB 16.00KiB   <toplevel>\n0/256 1.00KiB 1.00KiB   <stale>\n0/257 16.00KiB 16.00KiB   sandbox";
  };
  await prepareVolume(instance, { ...administrator, run: older });
  assert.deepEqual(ran, [`btrfs qgroup show ${dir}`, `btrfs qgroup destroy 0/256 ${dir}`]);
});

test("while somebody uses it, it stays mounted", async () => {
  const { dir } = await prepared();
  const user = spawn("sleep", ["1000"], { cwd: dir });
  await once(user, "spawn");
  assert.equal(await unmount(dir), false);
  assert.equal(mountAt(dir)?.type, "btrfs");
  user.kill();
  await once(user, "exit");
  assert.ok(await unmount(dir));
});

test("a program with a copy of our mounts does not keep it, and one that uses it there keeps it for the next start only", async () => {
  const { dir } = await prepared();
  await asWorker("touch", join(dir, "kept"));
  const elsewhere = async (cwd: string): Promise<AsyncDisposable> => {
    const program = spawn("unshare", ["--mount", "sh", "-c", "echo begun; exec sleep 1000"], { cwd, stdio: ["ignore", "pipe", "inherit"] });
    await once(program.stdout, "data");
    return {
      [Symbol.asyncDispose]: async () => {
        program.kill();
        await once(program, "exit");
      },
    };
  };
  const isHeld = (): boolean => loopFiles().includes(instance.paths.volumeImage);
  {
    await using _copy = await elsewhere("/");
    assert.ok(await unmount(dir));
    await until("its loop device is free", () => !isHeld());
  }
  await prepared();
  {
    await using _user = await elsewhere(dir);
    // In our own namespace, nobody uses it.
    assert.ok(await unmount(dir));
    assert.ok(isHeld());
    await prepared();
    assert.ok(existsSync(join(dir, "kept")));
    assert.equal(loopFiles().filter((file) => file === instance.paths.volumeImage).length, 1);
  }
  assert.ok(await unmount(dir));
  await until("its loop device is free", () => !isHeld());
});

test("it is found again: mounted as it is, unmounted, or with its folder gone", async () => {
  const { dir } = await prepared();
  await asWorker("touch", join(dir, "kept"));
  const { device } = mountAt(dir) ?? {};
  await prepared();
  assert.equal(mountAt(dir)?.device, device, "what is mounted stays so");
  assert.ok(await unmount(dir));
  await prepared();
  assert.ok(existsSync(join(dir, "kept")));
  assert.ok(await unmount(dir));
  rmSync(dir, { recursive: true });
  await prepared();
  assert.ok(existsSync(join(dir, "kept")));
});

test("nobody can write where it belongs while it is not mounted", async () => {
  const { dir } = await prepared();
  assert.ok(await unmount(dir));
  await assert.rejects(asWorker("touch", join(dir, "stray")), /Permission denied/);
});

test("an image whose file system was never finished is made anew", async () => {
  const { volumeImage } = instance.paths;
  writeFileSync(`${volumeImage}.partial`, "");
  truncateSync(`${volumeImage}.partial`, 2 * GiB);
  await prepared();
  assert.ok(existsSync(volumeImage) && !existsSync(`${volumeImage}.partial`));
});

test("one that was mounted but not yet given its name gets it", async () => {
  const { volumeImage } = instance.paths;
  const { dir } = await prepared();
  await asWorker("touch", join(dir, "kept"));
  renameSync(volumeImage, `${volumeImage}.partial`);
  await prepared();
  assert.ok(existsSync(volumeImage) && existsSync(join(dir, "kept")));
});

test("a loop device that is left over is used, not doubled", async () => {
  await prepared();
  await releaseVolume(instance.paths);
  const loop = await run(["losetup", "--find", "--show", instance.paths.volumeImage]);
  try {
    await prepared();
    assert.equal(loopFiles().filter((file) => file === instance.paths.volumeImage).length, 1);
  } finally {
    await run(["losetup", "--detach", loop]).catch(() => {});
  }
});

test("after the machine has crashed it holds what had been synced", async () => {
  const { dir } = await prepared();
  const crashed = join(folder.path, "crashed.img");
  await asWorker("sh", "-c", `echo synced > ${dir}/file && sync ${dir}/file`);
  // What the disk holds now, with the log of what was synced not yet replayed.
  await run(["cp", "--sparse=always", instance.paths.volumeImage, crashed]);
  await freeVolume(instance.paths);
  renameSync(crashed, instance.paths.volumeImage);
  await prepared();
  assert.equal(readFileSync(join(dir, "file"), "utf8"), "synced\n");
});

test("a full one is mounted, and files can be deleted", async () => {
  const { dir } = await prepared();
  const { bsize, bavail } = { bsize: 4096, bavail: Math.floor((await fileSystemBytes(dir)) / 4096) };
  await asWorker("fallocate", "--length", String(bsize * Math.floor(bavail * 0.9)), join(dir, "large")).catch(() => {});
  await asWorker("sh", "-c", `for i in $(seq 200); do fallocate --length 4M ${dir}/$i 2>/dev/null || exit 0; done`);
  await releaseVolume(instance.paths);
  await prepared();
  await asWorker("sh", "-c", `rm ${dir}/*`);
  assert.deepEqual(readdirSync(dir), []);
});

test("damaged, with sandboxes in it, it stops the start, and the message says what can be done", async () => {
  await prepared();
  await releaseVolume(instance.paths);
  await run(["dd", "if=/dev/zero", `of=${instance.paths.volumeImage}`, "bs=1M", "count=80", "conv=notrunc"]);
  await assert.rejects(prepare(), (error: Error) => error instanceof StartFailure && /btrfs check .*volume\.img.*SANDGATE_VOLUME=none/s.test(error.message));
});

test("there is none when it is turned off, and none on a disk without room; the reason says so", async () => {
  assert.deepEqual(await prepare({ volume: "none" }), { reason: "turned off by SANDGATE_VOLUME" });
  const found = await prepare({ diskFloorBytes: Number.MAX_SAFE_INTEGER });
  assert.match("reason" in found ? found.reason : "", /too little room/);
  assert.ok(!existsSync(instance.paths.volumeImage));
});

test("where it cannot be mounted there is none, and nothing is left of it", async () => {
  const noMount = {
    ...administrator,
    run: (why: string, argv: readonly string[]) => administrator.run(why, argv[0] === "mount" ? ["mount", "/none"] : argv),
  };
  const found = await prepareVolume(instance, noMount);
  assert.match("reason" in found ? found.reason : "", /cannot be made here: mount/);
  assert.deepEqual(
    readdirSync(instance.paths.data).filter((name) => name.startsWith("volume.")),
    [],
  );
});

test("without the rights of root there is none", async () => {
  const unattended = async (): Promise<boolean> => false;
  assert.deepEqual(await prepareVolume(instance, { ...administrator, unattended }), { reason: "needs root, or sudo without a password" });
});

test("another file system at its place stops the start", async () => {
  mkdirSync(instance.paths.volume);
  await run(["mount", "-t", "tmpfs", "none", instance.paths.volume]);
  await assert.rejects(prepare(), /a file system of type tmpfs is mounted/);
});

/** A btrfs file system that somebody has mounted with these options. */
async function operatorsDisk(options: string): Promise<string> {
  const dir = join(folder.path, "disk");
  const file = join(folder.path, "disk.img");
  mkdirSync(dir, { recursive: true });
  writeFileSync(file, "");
  truncateSync(file, GiB);
  await run(["mkfs.btrfs", "--quiet", "--force", file]);
  await run(["mount", "-o", `loop,${options}`, file, dir]);
  return dir;
}
const wanted = "user_subvol_rm_allowed,nosuid,nodev";

test("a file system that the operator has mounted is used as it is, with limits, and does not grow by itself", async () => {
  const dir = await operatorsDisk(wanted);
  try {
    assert.deepEqual(await prepare({ volume: dir }), { dir });
    await asWorker("btrfs", "subvolume", "create", join(dir, "sandbox"));
    await run(["btrfs", "qgroup", "limit", "1M", join(dir, "sandbox")]);
    assert.deepEqual(await prepare({ volume: dir }), { dir }, "also with sandboxes in it");
    assert.ok(!existsSync(instance.paths.volumeImage));
  } finally {
    await releaseVolume({ volume: dir, volumeImage: join(folder.path, "disk.img") });
  }
});

test("one that cannot be used stops the start, with what is to be done", async () => {
  const refuses = (volume: string, reason: RegExp) =>
    assert.rejects(
      prepare({ volume }),
      (error: Error) => error instanceof StartFailure && error.message.includes(`SANDGATE_VOLUME=${volume}`) && reason.test(error.message),
    );
  await refuses(folder.path, /nothing is mounted there/);
  await refuses("/proc", /file system of type proc; btrfs is needed/);
  const dir = await operatorsDisk("noatime");
  try {
    await refuses(dir, /mount it with the options user_subvol_rm_allowed,nosuid,nodev/);
    await run(["btrfs", "subvolume", "create", join(dir, "home")]);
    await run(["mount", "-o", `remount,${wanted}`, dir]);
    await refuses(dir, /it holds home, which belongs to somebody else/);
    const part = join(folder.path, "part");
    mkdirSync(part);
    await run(["mount", "--bind", join(dir, "home"), part]);
    await refuses(part, /it is the subvolume \/home of a file system/).finally(() => run(["umount", part]));
  } finally {
    await releaseVolume({ volume: dir, volumeImage: join(folder.path, "disk.img") });
  }
});
