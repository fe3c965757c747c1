/** `run-as-worker` after everything of the account was killed at once, or Podman alone while it began: it refuses to work in these states. */
import assert from "node:assert/strict";
import { chownSync, cpSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { attempt } from "../../../shared/util/attempt.ts";
import { accountEnvironment, asAccount, inPodmanNamespace } from "../../../systemd/base/as-account.ts";
import type { Instance } from "../../../systemd/base/instance.ts";
import { run } from "../../../systemd/base/run.ts";
import { endUnusedPause } from "../../../systemd/supervisor/pause.ts";
import { Api } from "../../helpers/api.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { OwnStore } from "../../helpers/own-store.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { TestProcess } from "../../helpers/process.ts";
import { type Stack, startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const { path: dataDir } = fixture(temporaryFolder("recovery", 0o755));
// A storage of its own has a namespace of its own, so that nothing of another test is killed.
const instance = await testInstance(join(dataDir, "data"), { SANDGATE_STORAGE_DIR: join(dataDir, "storage") });
await run(asAccount(instance.account, ["mkdir", "-m", "0700", instance.runtimeDir]));

atEnd(async () => {
  await podman("rm", "--all", "--force", "--time", "0");
  await endUnusedPause(instance);
  rmSync(instance.runtimeDir, { recursive: true, force: true });
});

test("containers can be listed, removed and started after the pause process and all containers were killed", async () => {
  const container = await startContainer();
  assert.equal(await stateOf(container), "running");
  killNamespace(instance);

  const found = await Promise.all([stateOf(container), stateOf(container), stateOf(container)]);
  assert.deepEqual(new Set(found), new Set(["created"]), "all three saw the container, and that it does not run");
  await podman("rm", container);
  assert.equal(await stateOf(await startContainer()), "running");
});

test("containers can be listed and started after Podman was killed when it had made nothing but the pause process", async () => {
  const container = await startContainer();
  killNamespace(instance);
  rmSync(join(instance.runtimeDir, "libpod/tmp/alive"));
  assert.equal(await stateOf(container), "created");
  assert.equal(await stateOf(await startContainer()), "running");
});

test("a sandbox runs again after the worker, its sandboxes and the pause process were killed at once", async () => {
  const { stack, runs } = await startOne();
  killNamespace(stack.instance);
  await stack.worker.kill9();
  await stack.worker.start();
  await until("it runs", runs);
  assert.equal((await stack.containers())[0]?.running, true);
});

test("a sandbox has ids of its own from its next start on, or those of the worker where that is turned off", async () => {
  const { stack, runs } = await startOne();
  const { spec } = stack.worker;
  const shared = new TestProcess({ ...spec, env: { ...spec.env, SANDGATE_USER_IDS: "shared" } });
  const rootOf = async (): Promise<number> => {
    await until("it runs", runs);
    const { pid } = (await stack.containers())[0] ?? assert.fail();
    return Number(/^\s*0\s+(\d+)/.exec(readFileSync(`/proc/${pid}/uid_map`, "utf8"))?.[1]);
  };
  const own = await rootOf();
  assert.notEqual(own, stack.instance.account.uid);
  await stack.worker.stop();
  await shared.start();
  assert.equal(await rootOf(), stack.instance.account.uid);
  await shared.stop();
  await stack.worker.start();
  assert.equal(await rootOf(), own);
});

test("strong sandboxes with ids of their own and with the worker's leave no network behind", async () => {
  const { stack } = await startOne();
  const api = new Api(stack);
  const { spec } = stack.worker;
  const shared = new TestProcess({ ...spec, env: { ...spec.env, SANDGATE_USER_IDS: "shared" } });
  const create = (): Promise<string> => api.create({ isolation: "strong", resources: { memory: 256 } });
  /** Those that mounts of the worker's namespace keep. */
  const networks = ({ pid }: TestProcess): string[] => readFileSync(`/proc/${pid}/mountinfo`, "utf8").match(/net:\[\d+\]/g) ?? [];
  const own = await create();
  assert.equal(networks(stack.worker).length, 1);
  // Killed, it leaves the sandbox running, with its ids.
  await stack.worker.kill9();
  await shared.start();
  const other = await until("the next worker serves", create);
  assert.equal(new Set(networks(shared)).size, 2);
  for (const id of [own, other]) await api.delete(id);
  assert.deepEqual(networks(shared), []);
  await shared.stop();
  await stack.worker.start();
});

/** An installation with one sandbox, which stops with its worker. */
async function startOne(): Promise<{ stack: Stack; runs: () => Promise<boolean> }> {
  const store = await fixture(OwnStore.make());
  const stack = await fixture(startStack({ name: "killed", settings: { ...store.settings, SANDGATE_STOP_SANDBOXES: "true" } }));
  const api = new Api(stack);
  const id = await api.create();
  return { stack, runs: async () => (await api.call<{ status: string }>("GET", `/v1/sandboxes/${id}`)).body.status === "running" };
}

function podman(...args: string[]): Promise<string> {
  return run(inPodmanNamespace(instance, ["podman", ...args]), { env: accountEnvironment(instance), cwd: "/" });
}

async function startContainer(): Promise<string> {
  const root = join(instance.paths.storage, "root");
  mkdirSync(root, { recursive: true });
  cpSync("/usr/bin/catatonit", join(root, "catatonit"));
  chownSync(root, instance.account.uid, instance.account.gid);
  return (await podman("run", "--detach", "--network", "none", "--cgroups", "disabled", "--rootfs", root, "/catatonit", "-P")).trim();
}

async function stateOf(container: string): Promise<string> {
  const [found] = JSON.parse(await podman("ps", "--all", "--filter", `id=${container}`, "--format", "json")) as { State: string }[];
  return found?.State ?? "missing";
}

/** What happens when a machine ends a session, or runs out of memory. */
function killNamespace({ runtimeDir }: Instance): void {
  const pause = readFileSync(join(runtimeDir, "libpod/tmp/pause.pid"), "utf8");
  const namespace = namespaceOf(pause);
  assert.ok(namespace && namespace !== namespaceOf("self"));
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && namespaceOf(entry) === namespace);
  assert.ok(pids.length >= 3, "the pause process, conmon and the container");
  // One may go with another.
  for (const pid of pids) attempt(() => process.kill(Number(pid), "SIGKILL"));
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/user`);
  } catch {
    return undefined;
  }
}
