/** What a command leaves behind: nothing after a timeout, its background processes after a normal end. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make();

const python = (script: string): string => `python3 -c '${script}'`;

/** Commands that try to outlive their timeout. */
const trees: Record<string, string> = {
  "a child in the foreground": "sleep 600",
  "a child in a session of its own": "setsid sleep 600 & sleep 600",
  "a child forked twice": "( (sleep 600 &) & ); sleep 600",
  "a child under nohup": "nohup sleep 600 > /dev/null 2>&1 & sleep 600",
  "children that ignore signals": "trap '' TERM HUP INT; (trap '' TERM; sleep 600) & sleep 600; sleep 600",
  "a daemon that closed everything": `${python(
    'import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nos.chdir("/"); os.closerange(0, 1000); time.sleep(600)',
  )}; sleep 600`,
  "a stopped child": "sleep 600 & kill -STOP $!; sleep 600",
  "a child of a thread": python('import threading,subprocess\nthreading.Thread(target=subprocess.run, args=(["sleep", "600"],)).start()'),
  "a process that always forks and exits": `${python('import os\nprint("go", flush=True)\nos.closerange(0, 3)\nwhile True:\n  if os.fork(): os._exit(0)')} & sleep 600`,
};
// At once: each ends its own processes and none of another's.
describe("timeouts", { concurrency: true }, () => {
  for (const [name, command] of Object.entries(trees)) {
    test(`a timeout ends ${name}, and what was printed is in the result`, async () => {
      const mark = new Mark();
      const result = await api.execute(id, `echo before; echo warned >&2; ${command}`, { timeout: 2, env: mark.env });
      assert.deepEqual(mark.living(), []);
      assert.deepEqual([result.status, result.exit_code, result.stderr], ["timeout", 124, "warned\n"]);
      assert.match(result.stdout, /^before\n(go\n)?$/);
      assert.ok(result.execution_time_ms >= 2_000);
    });
  }
});

test("a timeout leaves the other commands of the sandbox alone", async () => {
  const [short, long] = await Promise.all([api.execute(id, "sleep 600", { timeout: 1 }), api.execute(id, "sleep 3; echo through")]);
  assert.deepEqual([short.status, long.status, long.stdout], ["timeout", "completed", "through\n"]);
});

test("a background process goes on after its command has ended, and does not hold up the answer", async () => {
  const mark = new Mark();
  const result = await api.execute(id, "sleep 600 & setsid sleep 600 & echo started", { env: mark.env, timeout: 60 });
  assert.deepEqual([result.status, result.exit_code, result.stdout], ["completed", 0, "started\n"]);
  // A process has no environment to be known by while it becomes another program.
  await until("both sleep", () => mark.living().length === 2);
  await api.execute(id, "true");
  assert.equal(mark.living().length, 2);
  await api.execute(id, "pkill -KILL sleep");
  await mark.gone();
});

test("a background process that writes without pause does not hold up the answer", async () => {
  const result = await api.execute(id, "yes & yes >&2 & sleep 0.3; exit 5", { timeout: 60 });
  assert.deepEqual([result.status, result.exit_code], ["completed", 5]);
  await api.execute(id, "pkill -KILL yes");
});

test("the last output is complete though the command ends right after it", async () => {
  for (let round = 0; round < 20; round++) {
    const { stdout, stderr } = await api.execute(id, "head -c 60000 /dev/zero | tr '\\0' a; echo end; echo end >&2");
    assert.equal(stdout.length, 60_004);
    assert.equal(stderr, "end\n");
  }
});
