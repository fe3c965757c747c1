/** A worker that is killed, hung, or finds that its containers were touched behind its back. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { attempt } from "../../../shared/util/attempt.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { commandLineOf } from "../../../worker/runtime/process/proc.ts";
import { Api } from "../../helpers/api.ts";
import { hostState } from "../../helpers/host-state.ts";
import { podmanService } from "../../helpers/part-processes.ts";
import {
  answers,
  assertAgreement,
  assertExplicitEnd,
  assertUnavailable,
  listOf,
  runsIn,
  startEndlessUpload,
  startMarked,
  temporaryFiles,
  usable,
} from "../../helpers/resilience.ts";
import type { Stack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

export function workerTests(stack: Stack): void {
  const api = new Api(stack);

  async function restartWorker(): Promise<void> {
    await stack.worker.kill9();
    await stack.worker.start();
    await stack.ready();
  }

  const service = (): number | undefined => podmanService(stack);

  /** Monitors that Podman started for containers that it does not know. */
  async function strays(): Promise<string[]> {
    const monitors = processIds().map(commandLineOf).filter(isMonitor);
    const known = (await stack.containers()).map(({ id }) => id);
    return monitors.filter((argv) => !known.some((id) => argv.includes(id))).map((argv) => argv.join(" "));
  }

  const isMonitor = ([program = "", ...args]: string[]): boolean =>
    /(^|\/)conmon$/.test(program) && args.some((word) => word.startsWith(`${stack.instance.runtimeDir}/sandgate/${stack.worker.spec.env.SANDGATE_WORKER_ID}/`));

  async function assertNoStrays(): Promise<void> {
    // Containers of other tests come and go between the two looks, so one moment without any is what counts.
    let found: string[] = [];
    await until("what it had started is gone", async () => {
      found = await strays();
      return found.length === 0;
    }).catch(() => {});
    assert.deepEqual(found, []);
  }

  const containerOf = async (sandboxId: string): Promise<string> => (await stack.containerOf(sandboxId)).id;
  const statusOf = async (id: string): Promise<unknown> => (await api.call("GET", `/v1/sandboxes/${id}`)).body.status;

  test("kill -9 of the worker in mid-stream: the client is told, nothing is run again, the log says error", async () => {
    const id = await api.create();
    const { marked, outcome } = await startMarked(api, id);
    await stack.worker.kill9();
    assertExplicitEnd(await outcome);
    assertUnavailable(await answers(api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })));
    await stack.worker.start();
    await usable(api, id);
    await marked.gone();
    assert.equal(await runsIn(api, id), 1);
    const { body } = await api.call<{ logs: { command: string; status: string; exit_code: number }[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${id}`);
    const entry = body.logs.find(({ command }) => command === marked.command);
    assert.deepEqual([entry?.status, entry?.exit_code], ["error", -1]);
    await api.delete(id);
  });

  test("the exec server of a sandbox goes on with the next worker", async () => {
    const id = await api.create();
    const about = "cat /proc/$PPID/comm; grep -lx .sandgate-exec /proc/[0-9]*/comm";
    const { stdout: before } = await api.execute(id, about);
    assert.match(before, /^\.sandgate-keep\n\/proc\/\d+\/comm\n$/);
    await restartWorker();
    await until("it starts commands again", async () => (await api.execute(id, about)).stdout === before);
    await api.delete(id);
  });

  test("a sandbox survives kill -9 of the worker with its files, variables and background processes", async () => {
    const id = await api.create({ name: "survivor", env_vars: { COLOUR: "blue" } });
    await api.execute(id, "echo kept > /root/file");
    const { stdout: pid } = await api.execute(
      id,
      "sh -c 'while :; do sleep 0.1; date +%s%N > /root/next; mv /root/next /root/beat; done' >/dev/null 2>&1 & echo $!",
    );
    await stack.worker.kill9();
    const before = await containerOf(id);
    await stack.worker.start();
    await usable(api, id);
    assert.equal(await containerOf(id), before);
    assert.deepEqual(
      (await listOf(api)).map(({ name, status }) => [name, status]),
      [["survivor", "running"]],
    );
    assert.equal((await api.execute(id, "cat /root/file; echo $COLOUR")).stdout, "kept\nblue\n");
    assert.equal(
      (await api.execute(id, `kill -0 ${pid.trim()} && a=$(cat /root/beat); while [ "$a" = "$(cat /root/beat)" ]; do sleep 0.1; done`)).exit_code,
      0,
    );
    await api.delete(id);
  });

  test("a create and a delete that were acknowledged hold when the worker is killed at once", async () => {
    const gone = await api.create();
    const kept = await api.create();
    assert.equal((await api.call("DELETE", `/v1/sandboxes/${gone}/delete`)).status, 200);
    await restartWorker();
    await usable(api, kept);
    assert.equal((await api.call("GET", `/v1/sandboxes/${gone}`)).status, 404);
    await assertAgreement(stack, api);
  });

  test("a sandbox that was promised without waiting is made after kill -9 of the worker", async () => {
    const { status, body } = await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", wait_for_ready: false });
    assert.equal(status, 201);
    await restartWorker();
    await usable(api, body.id);
    await assertAgreement(stack, api);
  });

  test("kill -9 of the worker amid creates and deletes leaves records and containers in agreement", async () => {
    const old = await Promise.all(Array.from({ length: 4 }, () => api.create()));
    const deletions = old.map((id) => api.call("DELETE", `/v1/sandboxes/${id}/delete`));
    const creations = Array.from({ length: 5 }, () => api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }));
    await Promise.race([...deletions, ...creations]);
    await stack.worker.kill9();
    const deleted = await Promise.all(deletions.map((call) => answers(call)));
    const created = await Promise.all(creations);
    for (const { status } of [...deleted, ...created]) assert.ok([200, 201, 503].includes(status), `${status}`);
    await stack.worker.start();
    await stack.ready();
    for (const { status, body } of created) if (status === 201) await usable(api, body.id);
    for (const [index, { status }] of deleted.entries()) if (status === 200) assert.equal((await api.call("GET", `/v1/sandboxes/${old[index]}`)).status, 404);
    await assertAgreement(stack, api);
  });

  test("Podman's service that outlives its worker is ended, and nothing of what it makes stays", async () => {
    const old = await api.create();
    const pid = await until("the service runs", service);
    process.kill(pid, "SIGSTOP");
    const made = answers(api.call("POST", "/v1/sandboxes/create", { image: "default" }));
    await until("the files of the new sandbox are mounted", () => hostState(stack.worker).mounts.length === 2);
    await stack.worker.kill9();
    const starting = stack.worker.start();
    await sleep(2_500);
    process.kill(pid, "SIGCONT");
    await starting;
    await stack.ready();
    assertUnavailable(await made);
    await usable(api, old);
    await assertAgreement(stack, api);
    await assertNoStrays();
    await api.delete(old);
  });

  test("kill -9 of Podman's service amid creates and deletes: the calls succeed, and nothing stays but the sandboxes", async () => {
    const kill = async (delayMs: number): Promise<void> => {
      const pid = await until("the service runs", service);
      await sleep(delayMs);
      attempt(() => process.kill(pid, "SIGKILL")); // It may just have been killed for the call before.
    };
    // At different moments: while it creates, starts and removes containers.
    for (const delayMs of [0, 30, 60, 100, 150]) {
      const [made] = await Promise.all([api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }), kill(delayMs)]);
      assert.equal(made.status, 201, JSON.stringify(made.body));
      await usable(api, made.body.id);
      const [deleted] = await Promise.all([api.call("DELETE", `/v1/sandboxes/${made.body.id}/delete`), kill(delayMs / 2)]);
      assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
    }
    await assertAgreement(stack, api);
    await assertNoStrays();
  });

  test("kill -9 of the worker in mid-upload keeps the old file and no temporary one", async () => {
    const id = await api.create();
    await api.execute(id, "echo old > /root/target");
    const { ended } = await startEndlessUpload(api, id, "/root/target");
    await stack.worker.kill9();
    assert.ok([503, "broken"].includes(await ended));
    await stack.worker.start();
    await usable(api, id);
    assert.deepEqual(await temporaryFiles(api, id), []);
    assert.equal((await api.execute(id, "cat /root/target")).stdout, "old\n");
    await api.delete(id);
  });

  test("a container with this worker's label and no record is removed at the start", async () => {
    const id = await api.create();
    const container = await containerOf(id);
    const { Config } = JSON.parse(await stack.containerPodman(["container", "inspect", container]))[0];
    const worker = Config.Labels["sandgate.worker"];
    await stack.podman(
      "run",
      "--detach",
      "--name",
      `stray-${worker}`,
      "--label",
      `sandgate.worker=${worker}`,
      "--label",
      "sandgate.sandbox=sb_unknown",
      "--network",
      "none",
      Config.Labels["sandgate.image"],
      "sleep",
      "600",
    );
    await restartWorker();
    assert.deepEqual(
      (await stack.containers()).map(({ sandboxId }) => sandboxId),
      [id],
    );
    await assertAgreement(stack, api);
  });

  test("a container that was removed while the worker was down is made again over the files of its sandbox", async () => {
    const id = await api.create();
    await api.execute(id, "echo kept > /root/kept");
    const container = await stack.containerOf(id);
    await stack.worker.kill9();
    await stack.removeContainer(container);
    await stack.worker.start();
    await usable(api, id);
    assert.equal((await api.execute(id, "cat /root/kept")).stdout, "kept\n");
    await api.delete(id);
    await assertAgreement(stack, api);
  });

  test("a container and files that were removed while the worker was down make their sandbox an error, which can be deleted", async () => {
    const id = await api.create();
    const container = await stack.containerOf(id);
    await stack.worker.kill9();
    await stack.removeContainer(container);
    await stack.removeFiles(id);
    await stack.worker.start();
    await until("status error", async () => (await statusOf(id)) === "error");
    const execute = async (): Promise<number> => (await api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "true" })).status;
    await until("the worker to take calls", async () => (await execute()) !== 503);
    assert.equal(await execute(), 409);
    assert.equal((await api.call("DELETE", `/v1/sandboxes/${id}/delete`)).status, 200);
    assert.equal((await api.call("GET", `/v1/sandboxes/${id}`)).status, 404);
  });

  test("containers that are removed behind the worker's back are made again over the files of their sandboxes", async () => {
    // Podman may still be at work on a container when the worker notices that it has ended: only sometimes, hence several.
    const ids = await Promise.all(Array.from({ length: 4 }, () => api.create()));
    await Promise.all(ids.map((id) => api.execute(id, `echo ${id} > /root/kept`)));
    const before = await stack.containers();
    assert.deepEqual(before.map(({ sandboxId }) => sandboxId).sort(), [...ids].sort());
    await Promise.all(before.map((container) => stack.removeContainer(container)));
    await until("other containers", async () => {
      const after = await stack.containers();
      return after.length === ids.length && after.every(({ id, running }) => running && !before.some((one) => one.id === id));
    });
    for (const id of ids) {
      await usable(api, id);
      assert.equal((await api.execute(id, "cat /root/kept")).stdout, `${id}\n`);
    }
    await assertAgreement(stack, api);
  });

  test("a container that was killed with its monitor, of which Podman does not know that it has stopped, comes back with its files", async () => {
    const id = await api.create();
    await api.execute(id, "echo kept > /root/kept");
    const container = await stack.containerOf(id);
    const monitor = processIds().find((pid) => isMonitor(commandLineOf(pid)) && commandLineOf(pid).includes(container.id)) ?? assert.fail();
    for (const pid of [monitor, container.pid]) process.kill(pid, "SIGKILL");
    await until("it comes back", async () => (await api.execute(id, "cat /root/kept")).stdout === "kept\n");
    await api.delete(id);
    await assertAgreement(stack, api);
  });

  test("a container that Podman cannot start again is replaced, over the files of its sandbox", async () => {
    const id = await api.create();
    await api.execute(id, "echo kept > /root/kept");
    const container = await stack.containerOf(id);
    rmSync((await stack.containerPodman(["inspect", "--format", "{{.StaticDir}}", container.id])).trim(), { recursive: true });
    process.kill(container.pid, "SIGKILL");
    await until("it comes back", async () => (await api.execute(id, "cat /root/kept")).stdout === "kept\n");
    assert.deepEqual(
      (await stack.containers()).map(({ id, running }) => [id === container.id, running]),
      [[false, true]],
    );
    await api.delete(id);
    await assertAgreement(stack, api);
  });

  for (const action of [["stop", "--time", "0"], ["kill"]]) {
    test(`a container after podman ${action[0]} comes back by itself with its files, its commands having ended as killed`, async () => {
      const id = await api.create();
      const { marked, outcome } = await startMarked(api, id);
      await stack.endContainer(await stack.containerOf(id), action);
      const end = await outcome;
      if (end.kind === "broken" || end.last?.exit_code !== 137) assertExplicitEnd(end);
      await marked.gone();
      await until("one that runs again", async () => (await stack.containers()).every(({ running }) => running));
      await usable(api, id);
      assert.equal(await runsIn(api, id), 1);
      await api.delete(id);
    });
  }

  test("a hung worker: calls get 503, streams end with an error, and afterwards nothing of them runs on", async () => {
    const id = await api.create();
    const { marked, outcome } = await startMarked(api, id);
    stack.worker.signal("SIGSTOP");
    try {
      const call = answers(api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "echo run >> /root/runs" }));
      assertExplicitEnd(await outcome);
      assertUnavailable(await call);
      assertUnavailable(await answers(api.call("POST", `/v1/sandboxes/${id}/execute`, { command: "echo run >> /root/runs" })));
      assert.equal((await fetch(`${stack.url}/readyz`)).status, 503);
    } finally {
      stack.worker.signal("SIGCONT");
    }
    await usable(api, id);
    await marked.gone();
    assert.equal((await api.execute(id, "echo works")).stdout, "works\n");
    await api.delete(id);
  });
}
