/** Snapshots of sandboxes in which programs fork, stop and wait: they notice nothing of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, collect } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import type { Stack } from "../../helpers/stack.ts";
import { pythonCommand } from "../../helpers/trees.ts";
import { until } from "../../helpers/until.ts";

const seconds = 280;

export function processTests(stack: Stack): void {
  const api = new Api(stack);
  const calls = new SnapshotCalls(api);

  /** Files that take a while to be copied. */
  const ballast = "for n in 1 2 3 4; do yes $n | head -c 40M > /root/ballast-$n; done";

  /** Counts how often its child, which never stops by itself, is reported as stopped. */
  const watcher = `
import os, signal, sys, time
child = os.fork()
if child == 0:
    while not os.path.exists("/root/end"): time.sleep(0.001)
    os._exit(7)
print("watching", flush=True)
stops = 0
while True:
    pid, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status): break
    stops += 1
    os.kill(child, signal.SIGCONT)
print(stops, os.WEXITSTATUS(status))
`;

  test("no parent sees its child as stopped, no shell its job as suspended, and what was stopped stays so", async () => {
    const id = await api.create();
    const shell = "set -m; until [ -e /root/end ]; do sleep 0.01; done; jobs -s | wc -l; echo end";
    const commands = [`bash -c '${shell}'`, `bash -ic '${shell}' 2>/dev/null`, pythonCommand(watcher), pythonCommand(watcher)];
    const streams = await Promise.all(commands.map((command) => api.stream(id, command, { timeout: seconds })));
    const results = streams.map((stream) => collect(stream));
    const { stdout: pid } = await api.execute(id, "setsid sh -c 'kill -STOP $$; sleep 1000' >/dev/null 2>&1 & echo $!");
    const stateOf = async (): Promise<string> => (await api.execute(id, `grep State /proc/${pid.trim()}/status`)).stdout;
    await until("it is stopped", async () => /T \(stopped\)/.test(await stateOf()));
    for (let n = 0; n < 8; n++) expectOk(await calls.delete((await calls.take(id)).id));
    assert.match(await stateOf(), /T \(stopped\)/);
    await api.execute(id, "touch /root/end");
    const ends = await Promise.all(results);
    assert.deepEqual(
      ends.map(({ stdout }) => stdout),
      ["0\nend\n", "0\nend\n", "watching\n0 7\n", "watching\n0 7\n"],
    );
    assert.deepEqual(ends.map(({ stderr }) => stderr).join(""), "");
    await api.delete(id);
  });

  test("commands that are started meanwhile wait, streams go on, and transfers come through", async () => {
    const id = await api.create({ resources: { cpus: 1, memory: 512, storage: 10 } });
    await api.execute(id, ballast, { timeout: seconds });
    const counting = collect(await api.stream(id, "n=0; until [ -e /root/end ]; do n=$((n+1)); echo $n; sleep 0.01; done", { timeout: seconds }));
    for (let round = 0; round < 3; round++) {
      const snapshot = calls.take(id);
      const texts = await Promise.all(Array.from({ length: 12 }, async (_, n) => (await api.execute(id, `echo ${n}; sleep 0.05; echo ${n}`)).stdout));
      assert.deepEqual(
        texts,
        Array.from({ length: 12 }, (_, n) => `${n}\n${n}\n`),
      );
      expectOk(await calls.delete((await snapshot).id));
    }
    await api.execute(id, "touch /root/end");
    const { stdout, stderr, last } = await counting;
    const numbers = stdout.trim().split("\n");
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => String(index + 1)),
    );
    assert.deepEqual([stderr, last?.exit_code], ["", 0]);
    await api.delete(id);
  });

  const forker = `
import os, time
print("forking", flush=True)
while True:
    if os.fork() == 0:
        if os.fork() == 0: time.sleep(0.01)
        os._exit(0)
    os.wait()
`;

  test("a sandbox whose programs start others all the time is kept by both kinds of snapshots, and they go on", async () => {
    const id = await api.create();
    const loops = ["while :; do /bin/true; done", "echo; while :; do (/bin/true | /bin/cat); done", pythonCommand(forker)];
    const abort = new AbortController();
    const streams = await Promise.all(loops.map((command) => api.stream(id, command, { timeout: seconds }, abort.signal)));
    for (const quick of [false, true, false, true, false, true, false]) {
      const { id: snapshot, consistency } = await calls.take(id, { quick });
      assert.equal(consistency, quick ? "crash" : "application");
      expectOk(await calls.delete(snapshot));
    }
    const running = await api.execute(id, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c -e bin/true -e forking");
    assert.ok(Number(running.stdout) > 0);
    abort.abort();
    assert.ok(streams.every(({ status }) => status === 200));
    await api.delete(id);
  });
}
