/** A sandbox that exceeds its limits: its commands end, the machine and its neighbors are unaffected. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const python = (script: string): string => `python3 -c '${script}'`;

/**
 * Bombs stay a little below the number of processes that all sandboxes of this machine share where it has no pids
 * controller: above it, the commands of the tests that run beside this one could not fork for a moment.
 */
const bombProcesses = 1_500;
const bombs: Record<string, string> = {
  // The shell becomes the last program: it may not be able to fork any more.
  bash: "bash -c ':(){ :|:& };:'; exec sleep 60",
  python: python("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"),
};
/** @param enforced whether the kernel limits the sandboxes of this installation */
async function resourceTopics(api: Api, enforced: boolean): Promise<{ greedy: string; neighbour: string; expectUsable: (id: string) => Promise<void> }> {
  const how = enforced ? "by the kernel" : "by the worker";
  const sandboxes = fixture(new Sandboxes(api));
  const [greedy, neighbour] = await Promise.all([sandboxes.make({ resources: { memory: 256, storage: 1 } }), sandboxes.make()]);

  async function expectUsable(id: string): Promise<void> {
    const { stdout, exit_code } = await api.execute(id, "echo usable");
    assert.deepEqual([stdout, exit_code], ["usable\n", 0]);
  }

  test(`a command that takes more memory than its sandbox has is ended, and the result says why: ${how}`, async () => {
    const result = await api.execute(
      greedy,
      python('import time\nparts=[]\nfor i in range(48): parts.append(b"x"*(16<<20))\nprint("full", flush=True)\ntime.sleep(60)'),
    );
    assert.deepEqual([result.status, result.exit_code], ["completed", 137]);
    assert.match(result.error ?? "", /memory/);
    await expectUsable(greedy);
    await expectUsable(neighbour);
  });

  test(`memory of many processes counts together: ${how}`, async () => {
    const script =
      'import os,time\nfor i in range(8):\n  if os.fork()==0:\n    part=b"x"*(64<<20); time.sleep(60); os._exit(0)\nraise SystemExit(128 + (os.wait()[1] & 127))';
    const result = await api.execute(greedy, python(script));
    assert.deepEqual([result.status, result.exit_code], ["completed", 137]);
    assert.match(result.error ?? "", /memory/);
  });

  for (const [language, bomb] of Object.entries(bombs)) {
    test(`a fork bomb in ${language} is bounded, and other sandboxes stay usable: ${how}`, async () => {
      const mark = new Mark();
      const [result] = await Promise.all([
        api.execute(greedy, `ulimit -p ${bombProcesses}; ${bomb}`, { timeout: enforced ? 3 : 60, env: mark.env }),
        until("the neighbour answers", async () => (await api.execute(neighbour, "echo usable").catch(() => undefined))?.exit_code === 0),
      ]);
      // The kernel only refuses more processes than the sandbox may have.
      assert.equal(result.exit_code, enforced ? 124 : 137);
      // What many processes use counts together, so that the memory limit may be reached first.
      if (!enforced) assert.match(result.error ?? "", /processes|memory/);
      await mark.gone();
      await expectUsable(greedy);
      await expectUsable(neighbour);
    });
  }

  return { greedy, neighbour, expectUsable };
}

const watched = await fixture(startStack({ name: "watched", settings: { SANDGATE_CONTROL_GROUPS: "none" } }));
await resourceTopics(new Api(watched), false);
const api = new Api(sharedStack());
const { greedy, neighbour, expectUsable } = await resourceTopics(api, true);

test("a command that writes more than the sandbox's storage is ended, the result says why, and space can be made", async () => {
  // Where the kernel has ended the writing, there is nothing to wait for.
  const result = await api.execute(greedy, "fallocate -l 900M /srv/big; cat /dev/zero >> /srv/big || exit 1; echo full; sleep 20", { timeout: 180 });
  assert.match(result.error ?? result.stderr, /storage|No space|quota/);
  await api.execute(greedy, "true");
  await until("there is room again", async () => (await api.execute(greedy, "rm -f /srv/big; sleep 2; echo usable")).stdout === "usable\n");
  await expectUsable(neighbour);
});

test("many files are no harm", async () => {
  const script = 'import os\nos.makedirs("/srv/many")\nfor i in range(20000): open("/srv/many/%d" % i, "w").close()\nprint(len(os.listdir("/srv/many")))';
  assert.equal((await api.execute(neighbour, python(script), { timeout: 120 })).stdout, "20000\n");
});

test("open files of a process, core dumps and /dev/shm have a bound", async () => {
  const script =
    'import os\nfiles=[]\ntry:\n  while True: files.append(os.open("/dev/null", os.O_RDONLY))\nexcept OSError as e: print(len(files) <= 65536, e.strerror)';
  assert.equal((await api.execute(neighbour, python(script), { timeout: 120 })).stdout, "True Too many open files\n");
  const { stdout } = await api.execute(
    neighbour,
    "ulimit -c; cat /dev/zero > /dev/shm/fill; stat -c %s /dev/shm/fill | awk '{ print ($1 <= 67108864) }'; rm /dev/shm/fill",
  );
  assert.equal(stdout, "0\n1\n");
});

const suicides: Record<string, string> = {
  "kill 1": "kill 1; kill -9 1; sleep 1",
  "kill -9 -1": "kill -9 -1; sleep 1",
  "kill -9 of its own parent": "kill -9 $PPID; sleep 1",
};
for (const [name, command] of Object.entries(suicides)) {
  test(`a sandbox survives \`${name}\`, with its files`, async () => {
    await api.execute(greedy, "echo kept > /srv/file");
    const outcome = await api.call("POST", `/v1/sandboxes/${greedy}/execute`, { command, timeout: 20 });
    assert.ok([200, 503].includes(outcome.status), JSON.stringify(outcome.body));
    await until("the sandbox answers", async () => (await api.execute(greedy, "cat /srv/file").catch(() => undefined))?.stdout === "kept\n");
    await expectUsable(greedy);
  });
}
