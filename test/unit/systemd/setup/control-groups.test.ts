/** Control groups that the set-up gives to an account, on this machine's real hierarchies. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { distinctFolders, groupFoldersOf } from "../../../../shared/util/control-groups.ts";
import type { Account } from "../../../../systemd/base/instance.ts";
import { Terminal } from "../../../../systemd/base/terminal.ts";
import { createAdministrator } from "../../../../systemd/setup/administrator.ts";
import { offerControlGroups, removeControlGroups } from "../../../../systemd/setup/control-groups.ts";
import { atEnd } from "../../../helpers/fixture.ts";

// A number that no account has: groups belong to numbers.
const account: Account = { name: "nobody-else", uid: 64_123, gid: 64_123, home: "/nonexistent" };
const as = { stdio: "ignore", uid: account.uid, gid: account.gid } as const;
const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
const groups = groupFoldersOf(account.uid);
const folders = distinctFolders(groups?.folders ?? {});
const options = { skip: process.getuid?.() !== 0 || groups?.version !== "v1" ? "needs root and cgroup v1" : false };

atEnd(() => removeControlGroups(account, administrator));

test("the account can make groups and limit them, but not change the limits of all of them together", options, async () => {
  await offerControlGroups(account, administrator);
  await offerControlGroups(account, administrator);
  for (const folder of folders) assert.equal(statSync(folder).uid, account.uid);
  const memory = groups?.folders.memory ?? assert.fail("this machine has no memory controller");
  const runAs = async (script: string): Promise<number | null> => {
    return (await once(spawn("sh", ["-c", script, "sh", memory], as), "exit"))[0];
  };
  assert.equal(await runAs('mkdir "$1/one" && echo 67108864 > "$1/one/memory.limit_in_bytes"'), 0);
  assert.notEqual(await runAs('echo 67108864 > "$1/memory.limit_in_bytes"'), 0);
  assert.notEqual(await runAs('mkdir "$1/../beside"'), 0);
  assert.notEqual(await runAs(`echo ${process.pid} > "$1/one/cgroup.procs"`), 0, "another user's process");
});

test("they stay while something of the account runs, and then go, wherever earlier starts have made them", options, async () => {
  await offerControlGroups(account, administrator);
  const above = groups?.folders.pids?.replace(/[^/]+$/, `sandgate-test-${process.pid}`) ?? assert.fail("this machine has no pids controller");
  const elsewhere = join(above, `sandgate-${account.uid}`);
  mkdirSync(elsewhere, { recursive: true });
  atEnd(() => existsSync(above) && rmdirSync(above));
  const sleeper = spawn("sleep", ["1000"], as);
  await once(sleeper, "spawn");
  await removeControlGroups(account, administrator);
  assert.ok([...folders, elsewhere].every((folder) => existsSync(folder)));
  sleeper.kill("SIGKILL");
  await once(sleeper, "exit");
  await removeControlGroups(account, administrator);
  assert.deepEqual([...folders, elsewhere].filter(existsSync), []);
});
