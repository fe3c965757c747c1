/** An installation in which one account ran all parts, and what that account may have left in its folders. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, lchownSync, linkSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { type Instance, instanceOf } from "../../../../systemd/base/instance.ts";
import { findAccounts } from "../../../../systemd/setup/account.ts";
import { formerOwner } from "../../../../systemd/setup/former-owner.ts";
import { noteProcess } from "../../../../systemd/supervisor/leftovers.ts";
import { identify } from "../../../../systemd/supervisor/processes.ts";

const asRoot = { skip: process.getuid?.() !== 0 && "only root gives each part a user of its own" };
const progress = { say: () => {} };
let dataDir = "";
let instance: Instance;

/** Something of the worker's. */
function owned(path: string): string {
  lchownSync(path, instance.account.uid, instance.account.gid);
  return path;
}

beforeEach(async () => {
  if (asRoot.skip) return;
  dataDir = mkdtempSync(join(tmpdir(), "sandgate-former-"));
  chmodSync(dataDir, 0o711);
  const config = loadConfig({ ...process.env, SANDGATE_DATA_DIR: dataDir });
  instance = instanceOf(config, await findAccounts(config));
  const { paths } = instance;
  for (const folder of [paths.supervisor, paths.nats, join(paths.nats, "jetstream"), paths.gateway]) mkdirSync(folder, { mode: 0o700 });
  for (const folder of [paths.nats, join(paths.nats, "jetstream"), paths.gateway]) owned(folder);
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

test("NATS gets its files, and of what others own nothing that links lead to", asRoot, async () => {
  const { paths, accounts } = instance;
  const [foreign, folder] = [join(dataDir, "foreign"), join(dataDir, "folder")];
  writeFileSync(foreign, "");
  mkdirSync(folder);
  writeFileSync(join(folder, "file"), "");
  const file = join(paths.nats, "jetstream/file");
  writeFileSync(file, "");
  owned(file);
  chmodSync(file, 0o6755);
  linkSync(foreign, join(paths.nats, "hard"));
  symlinkSync(foreign, join(paths.nats, "to-file"));
  symlinkSync(folder, join(paths.nats, "to-folder"));
  for (const name of ["to-file", "to-folder"]) owned(join(paths.nats, name));
  const step = formerOwner(instance);
  assert.ok(await step.lacks());
  await step.provide(progress);
  assert.equal(await step.lacks(), undefined);
  for (const path of [paths.nats, join(paths.nats, "jetstream"), file, join(paths.nats, "to-file")]) {
    assert.deepEqual([lstatSync(path).uid, lstatSync(path).gid], [accounts.nats.uid, accounts.nats.gid], path);
  }
  assert.equal(lstatSync(file).mode & 0o7777, 0o755, "no program of the former owner's becomes one that runs as NATS");
  for (const path of [foreign, folder, join(folder, "file")]) assert.equal(lstatSync(path).uid, 0, path);
});

test("nothing that was left for the gateway stays, and nothing outside of its folder goes", asRoot, async () => {
  const { paths } = instance;
  const kept = join(dataDir, "kept");
  mkdirSync(kept);
  owned(kept);
  writeFileSync(join(kept, "file"), "");
  mkdirSync(join(paths.gateway, "compiled"));
  owned(join(paths.gateway, "compiled"));
  symlinkSync(kept, join(paths.gateway, "compiled/link"));
  await formerOwner(instance).provide(progress);
  assert.ok(!existsSync(paths.gateway) && existsSync(join(kept, "file")));
});

test("no owner changes under a part that runs, or of a folder of somebody else", asRoot, async () => {
  const { paths, accounts } = instance;
  await noteProcess(paths.supervisor, "nats", identify(process.pid) ?? assert.fail("this process runs"));
  await assert.rejects(formerOwner(instance).provide(progress), /Stop the Sandgate that runs on \S+ first: the files of nats get other owners/);
  assert.equal(lstatSync(paths.nats).uid, instance.account.uid);
  rmSync(join(paths.supervisor, "nats.process.json"));
  lchownSync(paths.nats, accounts.gateway.uid, accounts.gateway.gid);
  await assert.rejects(formerOwner(instance).provide(progress), /belongs to user \d+, not to \S+-nats/);
});
