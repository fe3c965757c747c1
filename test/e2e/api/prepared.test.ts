/** Sandboxes that were containers of the pool, of which all but one wait with the files of the default image. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { pidNamespaceOf } from "../../../worker/runtime/process/proc.ts";
import { type Answer, Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { hostState, untilHostHas } from "../../helpers/host-state.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const size = 3;
const faults = join(fixture(temporaryFolder("prepared", 0o755)).path, "point");
const settings = { SANDGATE_POOL_SIZE: String(size), SANDGATE_POOL_SIZE_MAX: String(size), SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_TEST_FAULT: faults };
const stack = await fixture(startStack({ name: "prepared", settings }));
const api = new Api(stack);

const sandboxes = fixture(new Sandboxes(api));

const overlay = 0x794c7630;

/** Waits until the pool is full. @param furnished how many have files, if that matters @returns what waits in it */
const full = (furnished?: number): Promise<string[]> =>
  until("the pool is full", async () => {
    const { data } = (await api.call<{ data: { id: string }[] }>("GET", "/v1/sandboxes/list?page_size=100")).body;
    const those = (await stack.containers()).filter(({ running, sandboxId }) => running && !data.some(({ id }) => id === sandboxId));
    const isAsWanted = furnished === undefined || those.filter(({ pid }) => hasFiles(pid)).length === furnished;
    return those.length === size && isAsWanted ? those.map(({ sandboxId }) => sandboxId) : undefined;
  });

/** Whether a container has more than the empty root. */
const hasFiles = (pid: number): boolean => statfsSync(`/proc/${pid}/root/`).type === overlay;

/** What a command in a sandbox can see of how the sandbox was made. */
const looks = {
  mounts:
    "sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //;s/:[0-9]+ / /g;s/(upperdir|lowerdir|workdir)=[^, ]*//g;s/([ug]id|size)=[0-9]*k?//g;s/([0-9a-f]{64}|sb_[0-9a-z]+)/ID/g' /proc/self/mountinfo | sort",
  files: "stat -c '%A %u %g %t %T %N' /* /dev/* /run/* /run/.sandgate/* /etc/hosts /etc/hostname /etc/resolv.conf; ls -A /run /etc; readlink /etc/mtab",
  above: "ls -A /..; stat -c %i / /..; ls -A /proc/1/cwd /proc/1/root 2>&1",
  environment: "env | grep -v ^HOSTNAME= | sort",
  process: "id; pwd; umask; ulimit -a; grep -E '^(Cap|Seccomp|NoNew)' /proc/self/status; cat /proc/self/setgroups",
  system: "sysctl -a 2>/dev/null | grep -E '^(kernel.(shm|msg|sem)|fs.mqueue|user)'; cat /proc/self/cgroup | wc -l",
  masks:
    "for path in /proc/kcore /proc/keys /proc/timer_list /proc/scsi /sys/firmware; do (head -c 1 $path || ls -A $path) 2>&1 | wc -c; done; for path in /proc/sys/kernel/panic /proc/sysrq-trigger /proc/irq/0 /sys/kernel/x; do echo 1 2>&1 > $path; done 2>&1",
  devices: "mknod /tmp/disk b 8 0 2>&1; mknod /tmp/null c 1 3 2>&1; cat /tmp/null /tmp/disk 2>&1; ls -A /dev/shm /dev/mqueue",
} as const;

/** The processes of a container, as the host sees them. */
const processesOf = (pid: number): number[] =>
  processIds().filter((each) => pidNamespaceOf(each) !== undefined && pidNamespaceOf(each) === pidNamespaceOf(pid));

test("nothing in a sandbox that was a waiting container is other than in one that was made anew", async () => {
  const waiting = await full(size - 1);
  const prepared = await sandboxes.make();
  assert.ok(waiting.includes(prepared));
  // The first of a kind that the pool does not hold.
  const anew = await sandboxes.make({ resources: { cpus: 2 } });
  assert.ok(!waiting.includes(anew));
  for (const [what, command] of Object.entries(looks)) {
    const [one, other] = [await api.execute(prepared, command), await api.execute(anew, command)];
    assert.equal(one.stdout, other.stdout, what);
    assert.notEqual(one.stdout, "", what);
  }
  await Promise.all([prepared, anew].map((id) => api.delete(id)));
});

/** Restores a snapshot into each waiting container, at once: otherwise the pool may have made others in between. @returns the sandboxes */
async function restoreIntoAll(snapshot: string): Promise<string[]> {
  const waiting = await full(size - 1);
  const restore = (): Promise<Answer<{ id: string }>> => api.call("POST", `/v1/snapshots/${snapshot}/restore`);
  const made = (await Promise.all(waiting.map(restore))).map((answer) => expectOk(answer, 201).id);
  assert.deepEqual(made.toSorted(), waiting.toSorted(), "containers that waited");
  return made;
}

test("nothing in a sandbox whose container had other files before is other than in one whose had none", async () => {
  const source = await sandboxes.make();
  await api.execute(source, "echo changed > /etc/changed; ln -s / /away");
  const snapshot = expectOk(await api.call<{ id: string }>("POST", `/v1/sandboxes/${source}/snapshot`), 201).id;
  const made = await restoreIntoAll(snapshot);
  for (const [what, command] of Object.entries(looks)) {
    const seen = await Promise.all(made.map(async (id) => (await api.execute(id, command)).stdout));
    for (const each of seen) assert.equal(each, seen[0], what);
  }
  for (const id of made) await expectOneRoot(id);
  await Promise.all([source, ...made].map((id) => api.delete(id)));
  await api.call("DELETE", `/v1/snapshots/${snapshot}`);
});

test("no process of a waiting container keeps the root that it had", async () => {
  const waiting = await full();
  const id = await sandboxes.make();
  assert.ok(waiting.includes(id));
  await api.execute(id, "true");
  await expectOneRoot(id);
  await api.delete(id);
});

async function expectOneRoot(id: string): Promise<void> {
  const container = await stack.containerOf(id);
  const processes = processesOf(container.pid);
  assert.ok(processes.length >= 2, "the first one and the exec server");
  for (const pid of processes) {
    const root = statSync(`/proc/${pid}/root/`);
    assert.equal(statfsSync(`/proc/${pid}/root/`).type, overlay);
    const kept = readdirSync(`/proc/${pid}/fd`).map((fd) => `fd/${fd}`);
    const found = ["cwd", ...kept].map((name) => attempt(() => statSync(`/proc/${pid}/${name}`))).filter((each) => each?.isDirectory());
    for (const folder of found) assert.deepEqual([folder?.dev, folder?.ino], [root.dev, root.ino]);
    assert.deepEqual(
      readFileSync(`/proc/${pid}/mountinfo`, "utf8")
        .split("\n")
        .filter((line) => / \/ \/ /.test(line))
        .slice(1),
      [],
    );
  }
}

test("a snapshot is restored, and a sandbox cloned, into what waits", async () => {
  await full();
  const source = await sandboxes.make();
  await api.execute(source, "echo kept > /root/file; rm /etc/debian_version");
  const before = await full();
  const snapshot = expectOk(await api.call<{ id: string }>("POST", `/v1/sandboxes/${source}/snapshot`), 201).id;
  const restored = expectOk(await api.call<{ id: string }>("POST", `/v1/snapshots/${snapshot}/restore`), 201).id;
  const cloned = expectOk(await api.call<{ sandbox: { id: string } }>("POST", `/v1/sandboxes/${source}/clone`), 201).sandbox.id;
  for (const id of [restored, cloned]) {
    assert.ok(before.includes(id), "a container that waited");
    assert.equal((await api.execute(id, "cat /root/file; ls /etc/debian_version")).stdout, "kept\n");
  }
  await Promise.all([source, restored, cloned].map((id) => api.delete(id)));
  const { data } = (await api.call<{ data: { id: string }[] }>("GET", "/v1/snapshots/list")).body;
  for (const { id } of data) await api.call("DELETE", `/v1/snapshots/${id}`);
});

/** The first processes of all containers. */
const firstProcesses = async (): Promise<number[]> => (await stack.containers()).map(({ pid }) => pid);

/** What a sandbox may do to its files before a snapshot of it is restored, and whether a waiting container can become that sandbox. */
const odd = {
  "another home of the superuser": { command: "sed -i 's|:/root:|:/home:|' /etc/passwd", fits: false },
  "more groups of the superuser": { command: "echo 'more:x:77:root' >> /etc/group; echo 'most:x:9:root,daemon' >> /etc/group", fits: true },
  "too many groups of the superuser": { command: "for gid in $(seq 100 200); do echo g$gid:x:$gid:root; done >> /etc/group", fits: false },
  "no users": { command: "rm /etc/passwd", fits: false },
  "a pipe in the place of the users": { command: "rm /etc/passwd; mkfifo /etc/passwd", fits: false },
};

for (const [index, [what, { command, fits }]] of Object.entries(odd).entries()) {
  test(`${what}: a snapshot is restored as it is without a pool`, async () => {
    await full();
    const source = await sandboxes.make();
    await api.execute(source, command);
    const snapshot = expectOk(await api.call<{ id: string }>("POST", `/v1/sandboxes/${source}/snapshot`), 201).id;
    const before = await full();
    const running = await firstProcesses();
    const restore = (resources: object): Promise<Answer<{ id: string }>> => api.call("POST", `/v1/snapshots/${snapshot}/restore`, { resources });
    const answers = [await restore({}), await restore({ memory: 400 + index })];
    assert.equal(answers[0]?.status, answers[1]?.status);
    const made = answers.flatMap(({ status, body: { id } }) => (status === 201 ? [id] : []));
    if (made.length > 0) {
      assert.deepEqual(
        made.map((id) => before.includes(id)),
        [true, false],
      );
      const { pid: first } = await stack.containerOf(made[0] ?? "");
      assert.equal(running.includes(first), fits, "the container is the one that waited");
    }
    const seen = await Promise.all(made.map((id) => api.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/execute`, { command: "echo $HOME; id" })));
    assert.equal(seen[0]?.body.stdout, seen[1]?.body.stdout);
    await Promise.all([source, ...made].map((id) => api.delete(id)));
    await api.call("DELETE", `/v1/snapshots/${snapshot}`);
  });
}

for (const point of ["create.noted", "create.mounted", "create.started"] as const) {
  test(`a worker that dies at ${point}, with a waiting container, leaves nothing of it`, async () => {
    const before = await full();
    const { pid } = stack.worker;
    writeFileSync(faults, point);
    const made = api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }).catch(() => undefined);
    await until(`the worker dies at ${point}`, () => !existsSync(`/proc/${pid}`));
    rmSync(faults);
    const answer = await made;
    await stack.worker.start();
    await stack.ready();
    // It may have been made when the worker died at the container that takes the place of its own.
    if (answer?.status === 201) await api.delete(answer.body.id);
    const after = await full();
    assert.ok(!before.some((id) => after.includes(id)), "those that waited are gone");
    await until("nothing else has files", () => hostState(stack.worker).roots.every((id) => after.includes(id)));
    await untilHostHas(stack.worker, { layers: 0, roots: hostState(stack.worker).roots });
  });
}

test("a sandbox that was a waiting container starts again when it has stopped, with its files and its environment", async () => {
  await full();
  const id = await sandboxes.make({ env_vars: { COLOUR: "blue" } });
  const see = "cat /root/file; env | grep -v ^HOSTNAME= | sort";
  await api.execute(id, "echo kept > /root/file");
  const before = (await api.execute(id, see)).stdout;
  await stack.worker.kill9();
  const container = await stack.containerOf(id);
  process.kill(container.pid, "SIGKILL");
  await stack.worker.start();
  await stack.ready();
  assert.equal((await api.execute(id, see)).stdout, before);
  await api.delete(id);
});
