/** Sandboxes that were containers of the pool, which wait without files. */
import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { untilHostHas } from "../../helpers/host-state.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const size = 3;
const faults = join(fixture(temporaryFolder("prepared", 0o755)).path, "point");
const settings = { SANDGATE_POOL_SIZE: String(size), SANDGATE_POOL_SIZE_MAX: String(size), SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_TEST_FAULT: faults };
const stack = await fixture(startStack({ name: "prepared", settings }));
const api = new Api(stack);

/** Waits until the pool is full. @returns the sandboxes of all containers */
const full = (others = 0): Promise<string[]> =>
  until("the pool is full", async () => {
    const ids = (await stack.containers()).map(({ sandboxId }) => sandboxId);
    return ids.length === size + others ? ids : undefined;
  });

/** What a command in a sandbox can see of how the sandbox was made. */
const looks = {
  mounts: "awk '{print $2, $3, $4}' /proc/self/mounts | sed 's/upperdir=.*//;s/lowerdir=.*//;s/uid=[0-9]*//;s/gid=[0-9]*//;s/size=[0-9]*k//' | sort",
  files: "ls -lAn --time-style=+ / /dev /run /etc/hosts /etc/hostname /etc/resolv.conf /etc/mtab",
  above: "ls -A /..; stat -c %i / /..",
  environment: "env | grep -v ^HOSTNAME= | sort",
  process: "id; pwd; umask; ulimit -a; grep -E '^(Cap|Seccomp|NoNew)' /proc/self/status; cat /proc/self/setgroups",
  system: "sysctl -a 2>/dev/null | grep -E '^(kernel.(shm|msg|sem)|fs.mqueue|user)'; cat /proc/self/cgroup | wc -l",
} as const;

test("nothing in a sandbox that was a waiting container is other than in one that was made anew", async () => {
  const waiting = await full();
  const prepared = await api.create();
  assert.ok(waiting.includes(prepared));
  // The first of a kind that the pool does not hold.
  const anew = await api.create({ resources: { cpus: 2 } });
  assert.ok(!waiting.includes(anew));
  for (const [what, command] of Object.entries(looks)) {
    const [one, other] = [await api.execute(prepared, command), await api.execute(anew, command)];
    assert.equal(one.stdout, other.stdout, what);
    assert.notEqual(one.stdout, "", what);
  }
  await Promise.all([prepared, anew].map((id) => api.delete(id)));
});

test("a snapshot is restored, and a sandbox cloned, into what waits", async () => {
  await full();
  const source = await api.create();
  await api.execute(source, "echo kept > /root/file; rm /etc/debian_version");
  const before = await full(1);
  const snapshot = expectOk(await api.call<{ id: string }>("POST", `/v1/sandboxes/${source}/snapshot`), 201).id;
  const restored = expectOk(await api.call<{ id: string }>("POST", `/v1/snapshots/${snapshot}/restore`), 201).id;
  const cloned = expectOk(await api.call<{ sandbox: { id: string } }>("POST", `/v1/sandboxes/${source}/clone`), 201).sandbox.id;
  for (const id of [restored, cloned]) {
    assert.ok(before.includes(id), "a container that waited");
    assert.equal((await api.execute(id, "cat /root/file; ls /etc/debian_version")).stdout, "kept\n");
  }
  await Promise.all([source, restored, cloned].map((id) => api.delete(id)));
  const { data } = (await api.call<{ data: { id: string }[] }>("GET", "/v1/snapshots")).body;
  for (const { id } of data) await api.call("DELETE", `/v1/snapshots/${id}`);
});

test("links in a snapshot lead nowhere else when a waiting container gets its files", async () => {
  await full();
  const source = await api.create();
  await api.execute(source, "mv /etc /kept && ln -s ../../../../kept /etc && echo kept > /kept/file");
  const before = await full(1);
  const snapshot = expectOk(await api.call<{ id: string }>("POST", `/v1/sandboxes/${source}/snapshot`), 201).id;
  const restored = expectOk(await api.call<{ id: string }>("POST", `/v1/snapshots/${snapshot}/restore`), 201).id;
  assert.ok(before.includes(restored), "a container that waited");
  const { stdout } = await api.execute(restored, "cat /etc/file; grep -c localhost /kept/hosts; grep -c kept/hosts /proc/self/mounts; ls -A /..");
  assert.match(stdout, /^kept\n1\n1\n/);
  assert.match(stdout, /^kept$/m, "the root is that of the sandbox");
  await Promise.all([source, restored].map((id) => api.delete(id)));
  await api.call("DELETE", `/v1/snapshots/${snapshot}`);
});

for (const point of ["create.noted", "create.mounted", "create.started"] as const) {
  test(`a worker that dies at ${point}, with a waiting container, leaves nothing of it`, async () => {
    const before = await full();
    const { pid } = stack.worker;
    writeFileSync(faults, point);
    const made = api.call("POST", "/v1/sandboxes/create", { image: "default" }).catch(() => undefined);
    await until(`the worker dies at ${point}`, () => !existsSync(`/proc/${pid}`));
    rmSync(faults);
    await made;
    await stack.worker.start();
    await stack.ready();
    const after = await full();
    assert.ok(!before.some((id) => after.includes(id)), "those that waited are gone");
    await untilHostHas(stack.worker, { layers: 0, roots: [] });
  });
}

test("a sandbox that was a waiting container starts again when it has stopped, with its files and its environment", async () => {
  await full();
  const id = await api.create({ env_vars: { COLOUR: "blue" } });
  const see = "cat /root/file; env | grep -v ^HOSTNAME= | sort";
  await api.execute(id, "echo kept > /root/file");
  const before = (await api.execute(id, see)).stdout;
  await stack.worker.kill9();
  const container = (await stack.containers()).find(({ sandboxId }) => sandboxId === id);
  process.kill(container?.pid ?? 0, "SIGKILL");
  await stack.worker.start();
  await stack.ready();
  assert.equal((await api.execute(id, see)).stdout, before);
  await api.delete(id);
});
