/** The exec server of a sandbox: what it starts, and what the sandbox gets from ending, stopping or leading it astray. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
const id = await sandboxes.make();

/** The name of the process that a command has as its parent. */
const parent = "cat /proc/$PPID/comm";
const byServer = ".sandgate-keep\n";
const byRuntime = ".sandgate-init\n";
/** More than a message to the server holds. */
const large = { LARGE: "x".repeat(40_000), LARGER: "x".repeat(40_000) };
const serverPid = "$(grep -lx .sandgate-exec /proc/[0-9]*/comm | cut -d/ -f3)";

async function startedBy(): Promise<string> {
  return (await api.execute(id, parent)).stdout;
}

const servers = async (): Promise<number> => Number((await api.execute(id, "grep -lx .sandgate-exec /proc/[0-9]*/comm | wc -l")).stdout);

const untilBack = (): Promise<true> => until("the server is back", async () => (await startedBy()) === byServer);

test("commands are started by the server", async () => {
  assert.equal(await startedBy(), byServer);
  const { stdout } = await api.execute(id, "grep -c . /proc/self/comm; tr '\\0' '\\n' < /proc/1/cmdline");
  assert.match(stdout, /^1\n\/run\/\.sandgate-exec\n/, "which the first process has started");
});

test("a server that was killed takes none of its commands with it, and is replaced", async () => {
  await untilBack();
  const long = api.execute(id, "sleep 2; echo through; exit 7");
  await api.execute(id, `kill -KILL ${serverPid}`);
  assert.equal(await startedBy(), byRuntime, "the runtime takes over");
  const { stdout, exit_code: exitCode } = await long;
  assert.deepEqual([stdout, exitCode], ["through\n", 7]);
  await untilBack();
  assert.equal(await servers(), 1);
});

test("of several servers, as a worker that is killed while it starts one may leave, one stays", async () => {
  await untilBack();
  await api.execute(id, "for further in 1 2; do (/run/.sandgate-exec < /dev/null > /dev/null 2>&1); done");
  assert.equal(await servers(), 3);
  await api.execute(id, `kill -KILL $(printf '%s\\n' ${serverPid} | sort -n | head -n 1)`);
  await untilBack();
  await until("one is left", async () => (await servers()) === 1);
});

test("what a killed server has started can still be timed out", async () => {
  await untilBack();
  const long = api.execute(id, "(setsid sleep 600 &); sleep 600", { timeout: 3 });
  await api.execute(id, `sleep 0.5; kill -KILL ${serverPid}`);
  assert.equal((await long).status, "timeout");
  assert.equal((await api.execute(id, "pgrep -c sleep")).stdout, "0\n");
});

test("while the server is stopped, a command runs all the same, and once", async () => {
  await untilBack();
  await api.execute(id, `kill -STOP ${serverPid}`);
  const { exit_code: exitCode } = await api.execute(id, "echo ran >> /tmp/runs");
  assert.equal(exitCode, 0);
  await untilBack();
  assert.equal((await api.execute(id, "cat /tmp/runs")).stdout, "ran\n");
});

test("a command whose keeper was killed counts as killed", async () => {
  await untilBack();
  const { status, exit_code: exitCode } = await api.execute(id, "kill -KILL $PPID; sleep 600");
  assert.deepEqual([status, exitCode], ["completed", 137]);
  await api.execute(id, "pkill -KILL sleep");
});

test("a copy of the server that nobody asked for is not taken for it", async () => {
  await untilBack();
  await api.execute(id, "cp /run/.sandgate-exec /tmp/server; (exec -a /run/.sandgate-exec /tmp/server < /dev/null) > /dev/null 2>&1");
  assert.equal(await startedBy(), byServer);
});

/** Connects wherever a server would, and keeps what it gets: commands with their streams, if it were taken for the server. */
const impostor = `import os, socket, sys
for name in list(os.environ): del os.environ[name]
taken = []
while True:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        link.connect("/run/.sandgate/worker")
        taken.append(link)
    except OSError:
        pass`;

test("who connects to the worker in place of the server gets no command", async () => {
  await untilBack();
  const start = `cat > /tmp/impostor.py <<'END'\n${impostor}\nEND\n(exec -a /run/.sandgate-exec python3 /tmp/impostor.py > /dev/null 2>&1 &)`;
  await api.execute(id, start);
  for (let round = 0; round < 3; round++) {
    await api.execute(id, `kill -KILL ${serverPid}`);
    const { stdout, exit_code: exitCode } = await api.execute(id, "echo mine");
    assert.deepEqual([stdout, exitCode], ["mine\n", 0]);
    await untilBack();
  }
  await api.execute(id, "pkill -KILL -f impostor.py");
});

test("a sandbox cannot listen in the worker's place", async () => {
  const { stdout } = await api.execute(
    id,
    "touch /run/.sandgate/worker /run/.sandgate/other 2>&1; mount | grep -c '/run/.sandgate .*(ro'; ls -A /run/.sandgate",
  );
  assert.match(stdout, /Read-only file system[\s\S]*\n1\n$/);
});

test("a command too large for a message is started by the runtime", async () => {
  await untilBack();
  const { stdout } = await api.execute(id, `${parent}; printf %s "$LARGE$LARGER" | wc -c`, { env: large });
  assert.equal(stdout, `${byRuntime}80000\n`);
  assert.equal(await startedBy(), byServer, "and the server is there as before");
});

test("a command has its streams, its signals and its group like one that the runtime starts", async () => {
  await untilBack();
  const about = [
    "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l",
    "grep -E '^(Uid|Gid|Groups|Sig(Blk|Ign|Cgt)|Cap|NoNewPrivs|Seccomp)' /proc/self/status",
    "ulimit -a; pwd; umask; ps -o pgid=,pid= -p $$ | awk '{ print $1 == $2 }'",
    "env | grep -v '^LARGE' | sort",
    "cat /proc/self/oom_score_adj; ps -o ni= -p $$",
  ].join("; ");
  const [served, started] = await Promise.all([api.execute(id, about), api.execute(id, about, { env: large })]);
  assert.equal(served.stderr, "");
  assert.equal(served.stdout, started.stdout);
});
