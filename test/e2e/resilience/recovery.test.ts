/** `run-as-worker` after everything of the account was killed at once: Podman refuses to work in that state. */
import assert from "node:assert/strict";
import { chownSync, cpSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { accountEnvironment, asAccount, inPodmanNamespace } from "../../../systemd/base/as-account.ts";
import type { Instance } from "../../../systemd/base/instance.ts";
import { run } from "../../../systemd/base/run.ts";
import { endUnusedPause } from "../../../systemd/supervisor/pause.ts";
import { Api } from "../../helpers/api.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { OwnStore } from "../../helpers/own-store.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { startStack } from "../../helpers/stack.ts";
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

test("a sandbox runs again after the worker, its sandboxes and the pause process were killed at once", async () => {
  const store = await fixture(OwnStore.make());
  const stack = await fixture(startStack({ name: "killed", settings: store.settings }));
  const api = new Api(stack);
  const id = await api.create();
  killNamespace(stack.instance);
  await stack.worker.kill9();
  await stack.worker.start();
  await until("it runs", async () => (await api.call<{ status: string }>("GET", `/v1/sandboxes/${id}`)).body.status === "running");
  assert.equal((await stack.containers())[0]?.running, true);
});

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
  for (const pid of pids) process.kill(Number(pid), "SIGKILL");
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/user`);
  } catch {
    return undefined;
  }
}
