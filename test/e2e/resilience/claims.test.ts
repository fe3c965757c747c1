/** A worker that is away for long, is started twice, or was forgotten: its id belongs to one machine and one process. */
import assert from "node:assert/strict";
import { chownSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { assertUnavailable, listOf, plain, usable, withSettings } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly error?: string | null;
}

const stack = await fixture(startStack({ name: "claims", settings: { ...plain, SANDGATE_WORKER_GRACE_MS: "1500" } }));
const api = new Api(stack);
const { worker } = stack;
const workerId = worker.spec.env.SANDGATE_WORKER_ID as string;
const sandbox = await api.create();

const shown = async (): Promise<Shown> => (await api.call<Shown>("GET", `/v1/sandboxes/${sandbox}`)).body;
const ofWorker = async (): Promise<readonly Shown[]> => expectOk(await api.call<{ data: Shown[] }>("GET", `/v1/admin/sandboxes?worker_id=${workerId}`)).data;
/** Refusals are final for whoever starts the worker, which then does not try again. */
const refused = (text: string): RegExp => new RegExp(`^Error: worker ended \\(78\\)[^]*${text}`);

test("the sandboxes of a worker that stays away are in error, with the reason, until it is back", async () => {
  await api.execute(sandbox, "echo kept > /root/file");
  await worker.kill9();
  await until("the error", async () => (await shown()).status === "error");
  assert.match((await shown()).error ?? "", /^its worker is gone, at least since .*; the sandbox comes back with it$/);
  assert.deepEqual(await listOf(api), []);
  assert.deepEqual(
    (await ofWorker()).map(({ id, status }) => [id, status]),
    [[sandbox, "error"]],
  );
  assert.equal(expectOk(await api.call<{ sandboxes: { error: number } }>("GET", "/v1/account/usage")).sandboxes.error, 1);
  assertUnavailable(await api.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: "true" }));
  await worker.start();
  await until("its return", async () => (await shown()).status === "running");
  assert.deepEqual(
    (await listOf(api)).map(({ id }) => id),
    [sandbox],
  );
  assert.equal((await api.execute(sandbox, "cat /root/file")).stdout, "kept\n");
});

/** Makes the data folder of another worker, as a copy of the worker's to which only the machine's id matters, or an empty one. */
function dataFolder(name: string, isCopy: boolean): string {
  const dir = join(stack.dataDir, name);
  mkdirSync(join(dir, "worker"), { recursive: true });
  const own = isCopy ? ["worker", "worker/worker-home"] : ["worker"];
  if (isCopy) copyFileSync(join(worker.spec.env.SANDGATE_DATA_DIR as string, "worker/worker-home"), join(dir, "worker/worker-home"));
  const { uid, gid } = stack.instance.account;
  for (const path of [dir, ...own.map((one) => join(dir, one))]) chownSync(path, uid, gid);
  return dir;
}

for (const [machine, isCopy, said] of [
  ["another machine with the same id", false, "is used by another machine, since"],
  ["a machine with a copy of the disk", true, "is used by a machine that runs, since .* this one has a copy of"],
] as const) {
  test(`${machine} is refused, and the worker goes on`, async () => {
    const runtimeDir = join(stack.instance.runtimeDir, `sandgate-${workerId}-copy`);
    await using second = withSettings(worker, {
      SANDGATE_DATA_DIR: dataFolder(isCopy ? "copy" : "elsewhere", isCopy),
      SANDGATE_VOLUME_DIR: "",
      ...(isCopy ? { SANDGATE_RUNTIME_DIR: runtimeDir } : {}),
    });
    try {
      await assert.rejects(second.start(), refused(`the worker id ${workerId} ${said}`));
    } finally {
      rmSync(runtimeDir, { recursive: true, force: true });
    }
    assert.equal((await api.execute(sandbox, "cat /root/file")).stdout, "kept\n");
    assert.ok(worker.readyLine, "the worker runs");
  });
}

test("a process whose place another has taken carries out nothing any more, and ends", async () => {
  await using successor = withSettings(worker, {});
  await successor.start();
  await usable(api, sandbox);
  // The older process may still be there.
  for (let count = 0; count < 5; count++) await api.execute(sandbox, "echo run >> /root/runs");
  await until("the end of the older one", () => worker.readyLine === undefined);
  assert.ok(worker.lines.some((line) => line.includes('"claim_lost"') && line.includes("another process has taken the place of this worker")));
  assert.equal((await api.execute(sandbox, "wc -l < /root/runs")).stdout, "5\n");
  await successor.kill9();
  await worker.start();
  await usable(api, sandbox);
});

test("a worker that was forgotten does not come back, and neither do its sandboxes, in which nothing runs any more", async () => {
  expectError(await api.call("DELETE", `/v1/admin/workers/${workerId}`), "conflict");
  worker.signal("SIGSTOP");
  const forgotten = await until("its end is known", async () => {
    const answer = await api.call("DELETE", `/v1/admin/workers/${workerId}`);
    return answer.status === 200 && answer.body;
  });
  assert.equal(forgotten.forgotten_sandboxes, 1);
  worker.signal("SIGCONT");
  await until("its end", () => worker.exitCode !== null);
  assert.equal(worker.exitCode, 1, "it is to be started again");
  assert.equal((await stack.containers()).length, 1);
  await assert.rejects(worker.start(), refused(`an operator has forgotten this worker \\(${workerId}\\) on`));
  assert.deepEqual(await stack.containers(), []);
  assert.deepEqual(await ofWorker(), []);
  expectError(await api.call("GET", `/v1/sandboxes/${sandbox}`), "not_found");
  expectError(await api.call("DELETE", `/v1/admin/workers/${workerId}`), "not_found");
});
