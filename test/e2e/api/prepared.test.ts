/** Sandboxes that were containers of the pool, which wait without files. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const size = 3;
const settings = { SANDGATE_POOL_SIZE: String(size), SANDGATE_POOL_SIZE_MAX: String(size) };
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
});

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
