/** The networks of sandboxes, each carried by a program beside its sandbox: what becomes of it when that, the worker or all of them are killed. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { processIds } from "../../../shared/util/proc.ts";
import { accountEnvironment, inPodmanNamespace } from "../../../systemd/base/as-account.ts";
import { run } from "../../../systemd/base/run.ts";
import { carriesNetwork } from "../../../worker/runtime/container/container.ts";
import { commandLineOf, isGone, monitorOf } from "../../../worker/runtime/process/proc.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, probeOne } from "../../helpers/probes.ts";
import { plain, usable } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const stack = await fixture(startStack({ name: "networks", settings: { ...plain, SANDGATE_SNAPSHOT_ARCHIVE: "false" } }));
const api = new Api(stack);
const carriers = (initPid: number): number[] => processIds().filter((pid) => carriesNetwork(pid) && commandLineOf(pid).includes(String(initPid)));

/** The first process of a sandbox. */
async function initOf(id: string): Promise<number> {
  const { pid } = await stack.containerOf(id);
  return pid || assert.fail(`${id} does not run`);
}

/** The program that carries the network of a sandbox. */
async function carrierOf(initPid: number): Promise<number> {
  await until("the sandbox has one network", () => carriers(initPid).length === 1);
  return carriers(initPid)[0] as number;
}

const kill = (...pids: number[]): void => pids.forEach((pid) => process.kill(pid, "SIGKILL"));

/** The other end of the network answers, and walls stand where they did. */
async function assertNetwork(id: string): Promise<void> {
  const answered = `
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.0.2.3", 53))
for _ in range(200):
    if " 0x2 " in open("/proc/net/arp").read(): result = "answered"; break
    time.sleep(0.02)`;
  await until("its network answers", async () => {
    const outcome = await probeOne(api, id, answered);
    return "done" in outcome && outcome.done === "answered";
  });
  expectRefused(await probeOne(api, id, 'socket.create_connection(("10.0.2.2", 80), 5)'), "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH");
}

test("a network whose program is killed is attached again, for as long as the sandbox runs", async () => {
  const id = await api.create();
  const init = await initOf(id);
  const { stdout: before } = await api.execute(id, "cat /sys/class/net/tap0/mtu /proc/net/route /etc/resolv.conf");
  for (let round = 0; round < 2; round++) {
    const carrier = await carrierOf(init);
    kill(carrier);
    await until("another one carries it", () => carriers(init).some((pid) => pid !== carrier));
    await assertNetwork(id);
  }
  assert.equal((await api.execute(id, "cat /sys/class/net/tap0/mtu /proc/net/route /etc/resolv.conf")).stdout, before);
  const last = await carrierOf(init);
  await api.delete(id);
  await until("it has ended with the sandbox", () => isGone(last) && carriers(init).length === 0);
});

test("a network goes on without the worker, and the next one finds it or attaches it again", async () => {
  const id = await api.create();
  const init = await initOf(id);
  const carrier = await carrierOf(init);
  await stack.worker.kill9();
  assert.deepEqual(carriers(init), [carrier]);
  await stack.worker.start();
  await usable(api, id);
  await assertNetwork(id);
  assert.deepEqual(carriers(init), [carrier]);

  await stack.worker.kill9();
  kill(carrier);
  await stack.worker.start();
  await usable(api, id);
  await assertNetwork(id);
  assert.equal(await initOf(id), init, "the sandbox has gone on");
  await api.delete(id);
});

test("nothing is left of a network when its sandbox ends without a worker, and both come back", async () => {
  const id = await api.create();
  const init = await initOf(id);
  const carrier = await carrierOf(init);
  await stack.worker.kill9();
  kill(init);
  await until("its program has ended", () => isGone(carrier));
  await stack.worker.start();
  await usable(api, id);
  await assertNetwork(id);
  assert.equal(carriers(await initOf(id)).length, 1);
  await api.delete(id);
});

test("a sandbox whose monitor was killed has a network again, of which nothing is left when it ends", async () => {
  const endings = {
    "it is deleted": (id: string) => api.delete(id),
    "its first process is killed": async (id: string) => kill(await initOf(id)),
    "its worker is killed first": async (id: string) => {
      const init = await initOf(id);
      await stack.worker.kill9();
      kill(init);
      await stack.worker.start();
    },
  };
  for (const [how, end] of Object.entries(endings)) {
    const id = await api.create();
    const init = await initOf(id);
    const carrier = await carrierOf(init);
    kill(monitorOf(init)[0] ?? assert.fail("it has no monitor"));
    await until("another one carries it", () => carriers(init).some((pid) => pid !== carrier));
    await assertNetwork(id);
    await end(id);
    await until(`it has ended: ${how}`, () => carriers(init).length === 0);
    if (how === "it is deleted") continue;
    await usable(api, id);
    await assertNetwork(id);
    await api.delete(id);
  }
});

test("attaching a network leaves alone what is mounted for others in Podman's namespace, as their networks are", async () => {
  const { instance } = stack;
  const dir = join(instance.runtimeDir, `others-${stack.worker.pid}`);
  const shell = (script: string) => run(inPodmanNamespace(instance, ["sh", "-ec", script, "sh", dir]), { env: accountEnvironment(instance), cwd: "/" });
  await shell('mkdir "$1"; mount --bind "$1" "$1"; mount --make-shared "$1"; mkdir "$1/network"; mount -t tmpfs of-another "$1/network"');
  try {
    const id = await api.create();
    await assertNetwork(id);
    assert.match(await shell("cat /proc/self/mountinfo"), / of-another /);
    await api.delete(id);
  } finally {
    await shell('umount --recursive --lazy "$1"; rm -r "$1"');
  }
});

test("a sandbox without a network gets none, and one with a network may change where it looks names up until its next start", async () => {
  const [none, outbound] = await Promise.all([api.create({ network: { access: "none" } }), api.create()]);
  assert.deepEqual(carriers(await initOf(none)), []);
  const { stdout } = await api.execute(
    outbound,
    "echo nameserver 9.9.9.9 > /etc/resolv.conf && stat -c %u:%a /etc/resolv.conf; cat /etc/resolv.conf; getent hosts $(hostname)",
  );
  assert.match(stdout, /^0:644\nnameserver 9\.9\.9\.9\n10\.0\.2\.100\s+sandbox-/);
  await Promise.all([none, outbound].map((id) => api.delete(id)));
});
