import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { run } from "../../../../../worker/runtime/process/run.ts";
import { until } from "../../../../helpers/until.ts";

const timeoutMs = 30_000;
const shell = (script: string, options: object = {}) => run("sh", ["-c", script], { timeoutMs, ...options });

test("a program gets its arguments, input and folder, and its output and exit code come back", async () => {
  const result = await run("sh", ["-c", 'pwd; cat; printf "%s|" "$@" >&2; exit 3', "sh", "a b", "ü\n"], { timeoutMs, cwd: tmpdir(), input: "in" });
  assert.deepEqual(result, { exitCode: 3, stdout: `${tmpdir()}\nin`, stderr: "a b|ü\n|", timedOut: false });
});

test("a program that is not there is a failure with a reason", async () => {
  const { exitCode, stderr } = await run("no-such-program", [], { timeoutMs });
  assert.equal(exitCode, -1);
  assert.match(stderr, /no-such-program/);
});

test("a program that takes too long is ended", async () => {
  const { exitCode, timedOut } = await run("sleep", ["600"], { timeoutMs: 50 });
  assert.deepEqual([exitCode, timedOut], [-1, true]);
});

test("many at once each get their own result", async () => {
  const results = await Promise.all(Array.from({ length: 50 }, (_, index) => shell(`echo ${index}; exit ${index}`)));
  results.forEach(({ exitCode, stdout }, index) => {
    assert.deepEqual([exitCode, stdout], [index, String(index)]);
  });
});

test("several MiB of output come back whole", async () => {
  const { stdout } = await shell("yes 0123456 | head -c 5242880");
  assert.equal(stdout.length, 5_242_880 - 1, "but for the last line break");
});

test("a signal kills the program", async () => {
  const { exitCode, timedOut } = await shell("exec sleep 600", { signal: AbortSignal.timeout(100) });
  assert.deepEqual([exitCode, timedOut], [-1, false]);
});

test("when the process that starts programs is killed, what ran has failed and the next program runs", async () => {
  const launcher = Number((await shell("echo $PPID")).stdout);
  assert.notEqual(launcher, process.pid);
  assert.match(readFileSync(`/proc/${launcher}/cmdline`, "utf8"), /launcher\.ts/);
  const [waiting, started] = [shell("exec sleep 600"), shell("echo $PPID")];
  await started;
  const children = (): string[] => readFileSync(`/proc/${launcher}/task/${launcher}/children`, "utf8").trim().split(" ");
  const sleeper = children()[0] as string;
  process.kill(launcher, "SIGKILL");
  const { exitCode, stderr } = await waiting;
  assert.equal(exitCode, -1);
  assert.match(stderr, /SIGKILL/);
  process.kill(Number(sleeper), "SIGKILL");
  assert.equal((await shell("echo again")).stdout, "again");
});

test("the process that starts programs outlives requests to stop, since shutting down takes programs", async () => {
  const launcher = Number((await shell("echo $PPID")).stdout);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(launcher, signal);
  assert.equal(Number((await shell("echo $PPID")).stdout), launcher);
});

test("the process that starts programs ends with its worker", async () => {
  const program = `import { run } from ${JSON.stringify(import.meta.resolve("../../../../../worker/runtime/process/run.ts"))};
    console.log((await run("sh", ["-c", "echo $PPID"], { timeoutMs: 30000 })).stdout);
    process.kill(process.pid, "SIGKILL");`;
  const { stdout } = await run(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], { timeoutMs });
  const launcher = Number(stdout);
  assert.ok(launcher > 1);
  await until("the launcher is gone", () => !isAlive(launcher));
});

function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
  } catch {
    return false;
  }
}
