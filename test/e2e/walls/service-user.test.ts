/** What the service user can make of root at the next start, after it was taken over: nothing. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { loadConfig } from "../../../shared/config.ts";
import { appDir } from "../../../shared/programs.mjs";
import { asAccount } from "../../../systemd/base/as-account.ts";
import type { Instance } from "../../../systemd/base/instance.ts";
import { run } from "../../../systemd/base/run.ts";
import { dataDirectories } from "../../../systemd/setup/directories.ts";
import { endUnusedPause } from "../../../systemd/supervisor/pause.ts";
import { identify, isRunning, signalProcess } from "../../../systemd/supervisor/processes.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { nobody, npmStart, shellAs } from "../../helpers/local-users.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { until } from "../../helpers/until.ts";

const waitMs = 60_000;
let victim: string;

const folder = fixture(temporaryFolder("walls-service-user", 0o755));
const data = join(folder.path, "data");
const instance = await testInstance(data, { SANDGATE_STORAGE_DIR: join(data, "containers") });
await shellAs(instance.account, 'mkdir -p "$1/libpod/tmp"', instance.runtimeDir);

beforeEach(() => {
  victim = join(folder.path, "roots");
  mkdirSync(victim, { mode: 0o700 });
  writeFileSync(join(victim, "secret"), "secret", { mode: 0o600 });
});

afterEach(() => rmSync(victim, { recursive: true, force: true }));

atEnd(() => rmSync(instance.runtimeDir, { recursive: true, force: true }));

/** The set-up of the data directory by the next start; resolves with what it says. */
async function nextStart(): Promise<string> {
  const { paths, config } = instance;
  const settings = { SANDGATE_USER: config.user, SANDGATE_DATA_DIR: paths.data, SANDGATE_STORAGE_DIR: paths.storage };
  return (await npmStart(["--setup-only"], settings)).output;
}

function untouched(): void {
  const { uid, gid, mode } = statSync(victim);
  assert.deepEqual({ uid, gid, mode: mode & 0o777 }, { uid: 0, gid: 0, mode: 0o700 });
}

test("puts a link to a folder of root's where root makes a folder of its own", async () => {
  await shellAs(instance.account, 'rm -rf "$1" && ln -s "$2" "$1"', instance.paths.imageTemporary, victim);
  const said = await nextStart();
  untouched();
  assert.match(said, /cannot be made/);
});

test("swaps a folder for such a link while root sets it up", async () => {
  const swap = 'while :; do rm -rf "$1" && mkdir -m 0755 "$1"; rm -rf "$1" && ln -s "$2" "$1"; done';
  const attacker = spawn("setpriv", [...attack(swap), instance.paths.imageTemporary, victim], { stdio: "ignore" });
  try {
    const step = dataDirectories(instance);
    for (let turn = 0; turn < 20; turn++) {
      await step.provide({ say: () => {} }).catch(() => {});
      untouched();
    }
  } finally {
    attacker.kill("SIGKILL");
  }
});

test("control: its own folders are set right again", async () => {
  const { imageTemporary: own } = instance.paths;
  await shellAs(instance.account, 'rm -rf "$1" && mkdir -m 0777 "$1"', own);
  const step = dataDirectories(instance);
  assert.equal(await step.lacks(), own);
  await step.provide({ say: () => {} });
  assert.equal(await step.lacks(), undefined);
  await shellAs(instance.account, 'rmdir "$1"', own);
  await step.provide({ say: () => {} });
  assert.equal(await step.lacks(), undefined);
});

test("names the process of another user as its own, for root to end", async () => {
  const other = spawn("setpriv", [...identity(nobody), "--", "unshare", "--user", "sleep", "1000"], { stdio: "ignore" });
  try {
    const ended = once(other, "exit");
    await until("in a namespace of its own", () => readFileSync(`/proc/${other.pid}/comm`, "utf8") === "sleep\n");
    await shellAs(instance.account, 'echo "$2" > "$1/libpod/tmp/pause.pid"', instance.runtimeDir, String(other.pid));
    await endUnusedPause(instance);
    other.kill("SIGTERM");
    assert.deepEqual(await ended, [null, "SIGTERM"], "it was there until now");
  } finally {
    other.kill("SIGKILL");
  }
});

test("control: a pause process of its own is ended", async () => {
  const own = spawn("setpriv", [...identity(instance.account), "--", "unshare", "--user", "sleep", "1000"], { stdio: "ignore" });
  const ended = once(own, "exit");
  await until("it runs", () => readFileSync(`/proc/${own.pid}/comm`, "utf8") === "sleep\n");
  await shellAs(instance.account, 'echo "$2" > "$1/libpod/tmp/pause.pid"', instance.runtimeDir, String(own.pid));
  await endUnusedPause(instance);
  assert.deepEqual(await ended, [null, "SIGKILL"]);
});

test("lets root wait for ever at a FIFO in place of a file", async () => {
  await shellAs(instance.account, 'rm -f "$1" && mkfifo "$1"', join(instance.runtimeDir, "libpod/tmp/pause.pid"));
  const supervisor = spawn(process.execPath, ["--input-type=module", "-e", endsPause(instance)], { cwd: appDir, stdio: "ignore" });
  const id = await until("it runs", () => identify(supervisor.pid ?? 0));
  try {
    await until("root goes on", () => !isRunning(id), waitMs);
  } finally {
    signalProcess(id, "SIGKILL");
  }
});

test("reads a secret of root's from the environment of a command that runs as it", async () => {
  process.env.SECRET_OF_ROOT = "sg_secret";
  const environment = await run(asAccount(instance.account, ["cat", "/proc/self/environ"]));
  delete process.env.SECRET_OF_ROOT;
  assert.match(environment, /PATH=/);
  assert.ok(!environment.includes("sg_secret"));
});

const identity = ({ uid, gid }: { uid: number; gid: number }): string[] => ["--reuid", String(uid), "--regid", String(gid), "--clear-groups"];
const attack = (script: string): string[] => [...identity(instance.account), "--", "sh", "-c", script, "sh"];

/** In a process that can be ended: a thread that waits in the kernel cannot. */
function endsPause({ config, account, paths }: Instance): string {
  const made = JSON.stringify({ ...loadConfig(), ...config, dataDir: paths.data, storageDir: paths.storage });
  return `import { endUnusedPause } from "./systemd/supervisor/pause.ts";
import { instanceOf } from "./systemd/base/instance.ts";
await endUnusedPause(instanceOf(${made}, ${JSON.stringify(account)}));
process.exit();`;
}
