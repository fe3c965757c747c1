/** The privileged helper and the volume: who else gets at them, and what the worker's user can make of its own (systemd/helper/THREATS.md). */
import assert from "node:assert/strict";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../shared/config.ts";
import { mountAt } from "../../../shared/util/mounts.ts";
import { instanceOf, type PartName } from "../../../systemd/base/instance.ts";
import { run } from "../../../systemd/base/run.ts";
import { findAccounts } from "../../../systemd/setup/account.ts";
import { servedFd } from "../../../systemd/supervisor/part.ts";
import { fileSystemBytes } from "../../../systemd/volume/volume.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, type Outcome } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { tryAs } from "../../helpers/users.ts";

const stack = sharedStack();
const config = loadConfig({ ...process.env, SANDGATE_DATA_DIR: stack.dataDir });
const accounts = await findAccounts(config);
const { paths } = instanceOf(config, accounts);
const worker = stack.pids.worker;
const file = (pid: number | string, fd: number | string): string => `/proc/${pid}/fd/${fd}`;
const connection = readlinkSync(file(worker, servedFd));
const [id = ""] = readdirSync(join(paths.data, "volumes"));
const volume = join(paths.data, "volumes", id, "volume");
const mount = mountAt(volume) ?? assert.fail("the worker has a volume");

async function refused(user: PartName, attempt: string, ...errors: string[]): Promise<void> {
  const { outcome } = await tryAs(accounts[user], { outcome: attempt });
  expectRefused(outcome, ...errors);
}

/** The processes that have the worker's connection open. */
function holders(): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(file(pid, fd)) === connection);
      } catch {
        return false; // it has ended meanwhile
      }
    })
    .map(Number);
}

test("a program that the worker has started, or a command in a sandbox, finds the connection among its files", async () => {
  const api = new Api(stack);
  const sandboxes = fixture(new Sandboxes(api));
  const sandbox = await sandboxes.make();
  await api.execute(sandbox, "sleep 1000 > /dev/null 2>&1 & exit 0");
  assert.match(connection, /^socket:/);
  assert.deepEqual(holders(), [worker]);
  const { stdout } = await api.execute(sandbox, "ls -l /proc/[0-9]*/fd");
  assert.match(stdout, /\/dev\/null/);
  assert.ok(!stdout.includes(connection));
});

for (const user of ["gateway", "nats"] as const) {
  test(`the user of ${user} opens the worker's connection`, () => refused(user, `fs.openSync("${file(worker, servedFd)}", "r+")`, "EACCES"));
}

test("another process of the worker's user opens the worker's connection by its name", () =>
  refused("worker", `fs.openSync("${file(worker, servedFd)}", "r+")`, "ENXIO", "EACCES"));

for (const user of ["worker", "gateway", "nats"] as const) {
  test(`the user of ${user} reads or writes the file of the volume, or its device`, async () => {
    for (const path of [`${volume}.img`, mount.source]) {
      await refused(user, `fs.openSync("${path}", "r")`, "EACCES");
      await refused(user, `fs.openSync("${path}", "r+")`, "EACCES");
    }
  });

  test(`the user of ${user} puts something else at the place of the volume or of its file`, async () => {
    for (const path of [volume, `${volume}.img`]) {
      await refused(user, `fs.renameSync("${path}", "${path}.away")`, "EACCES", "EBUSY");
      await refused(user, `fs.symlinkSync("/etc", "${path}.partial")`, "EACCES");
    }
    await refused(user, `fs.rmdirSync("${volume}")`, "EACCES", "EBUSY");
  });
}

for (const user of ["gateway", "nats"] as const) {
  test(`the user of ${user} enters the volume`, () => refused(user, `fs.readdirSync("${volume}")`, "EACCES"));
}

test("the worker's user gives others its rights, or makes a device, by files on the volume", async () => {
  for (const seen of [mount, mountAt(volume, worker)]) for (const option of ["nosuid", "nodev"]) assert.ok(seen?.options.includes(option), option);
  const script = `spawnSync("mknod", ["${join(volume, "device")}", "b", "7", "0"]).status === 0 || (() => { throw Object.assign(new Error(), { code: "EPERM" }) })()`;
  await refused("worker", script, "EPERM");
});

test("the worker's user changes limits, grows the volume or turns limits off by itself", async () => {
  const commands = [
    ["btrfs", "qgroup", "limit", "1T", "0/256", volume],
    ["btrfs", "filesystem", "resize", "-64M", volume],
    ["btrfs", "quota", "disable", volume],
    ["btrfs", "device", "remove", "1", volume],
    ["losetup", "--detach", mount.source],
  ];
  const before = await fileSystemBytes(volume);
  const attempts = commands.map(([name, ...args]) => [args.join(" "), `spawnSync("${name}", ${JSON.stringify(args)}).status`]);
  const outcomes: Record<string, Outcome> = await tryAs(accounts.worker, Object.fromEntries(attempts));
  for (const [name, outcome] of Object.entries(outcomes)) assert.ok("done" in outcome && Number(outcome.done) > 0, `${name}: ${JSON.stringify(outcome)}`);
  assert.equal(await fileSystemBytes(volume), before);
  // Limits of others change meanwhile, but none has this size.
  const limits = await run(["btrfs", "qgroup", "show", "-r", "--raw", volume]);
  assert.match(limits, /Max referenced/);
  assert.doesNotMatch(limits, new RegExp(` ${1024 ** 4} `));
});

test("control: the worker's user makes subvolumes and deletes them", async () => {
  const own = join(volume, "control");
  const done = await tryAs(accounts.worker, {
    made: `spawnSync("btrfs", ["subvolume", "create", "${own}"]).status`,
    removed: `spawnSync("btrfs", ["subvolume", "delete", "${own}"]).status`,
  });
  assert.deepEqual(done, { made: { done: 0 }, removed: { done: 0 } });
});
