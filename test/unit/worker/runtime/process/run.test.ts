import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { childrenOf } from "../../../../../worker/runtime/process/proc.ts";
import { programFailure, run } from "../../../../../worker/runtime/process/run.ts";
import { until } from "../../../../helpers/until.ts";

const timeoutMs = 30_000;
const shell = (script: string, options: object = {}) => run("sh", ["-c", script], { timeoutMs, ...options });

test("a program gets its arguments, input and folder, and its output and exit code come back", async () => {
  const result = await run("sh", ["-c", 'pwd; cat; printf "%s|" "$@" >&2; exit 3', "sh", "a b", "ü\n"], { timeoutMs, cwd: tmpdir(), input: "in" });
  assert.deepEqual(result, { exitCode: 3, stdout: `${tmpdir()}\nin`, stderr: "a b|ü\n|", timedOut: false });
});

test("a missing program is a failure with a reason", async () => {
  const { exitCode, stderr } = await run("no-such-program", [], { timeoutMs });
  assert.equal(exitCode, -1);
  assert.match(stderr, /no-such-program.*No such file/);
});

test("arguments are passed on unchanged, even those special to a shell; an impossible one is refused", async () => {
  const odd = ["", " ", "'\"$(id)`id`;|&*?[~", "\n", "a\nb\n", "\\n\\", "%s", "-n", "ü€😀", "\x01\x7f", "x".repeat(100_000)];
  const { stdout } = await run("printf", ["%s\\0", ...odd], { timeoutMs });
  assert.deepEqual(stdout.split("\0").slice(0, -1), odd);
  const { exitCode, stderr } = await run("printf", ["a\0b"], { timeoutMs });
  assert.equal(exitCode, -1);
  assert.match(stderr, /NUL/);
});

test("a missing folder is a failure with a reason", async () => {
  const { exitCode, stderr } = await run("true", [], { timeoutMs, cwd: "/no/such/folder" });
  assert.equal(exitCode, -1);
  assert.match(stderr, /No such file/);
});

test("a program has its three streams and default signals, and inherits nothing else from the worker", async () => {
  assert.equal((await shell("ls /proc/self/fd")).stdout, "0\n1\n2\n3", "the last one is that of ls itself");
  assert.match((await shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")).stdout, /^SigBlk:\t0{16}\nSigIgn:\t0{16}$/);
});

test("standard streams are pipes that can be opened by their names", async () => {
  assert.deepEqual(await shell("echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin", { input: "in" }), {
    exitCode: 0,
    stdout: "out\nin",
    stderr: "err",
    timedOut: false,
  });
});

test("a program that closes its streams early is waited for, and input that it does not take is dropped", async () => {
  const { exitCode, stdout } = await shell("echo begun; exec <&- >&- 2>&-; sleep 0.3; exit 7", { input: "x".repeat(1_000_000) });
  assert.deepEqual([exitCode, stdout], [7, "begun"]);
});

test("processes that a program leaves running are not waited for", async () => {
  const { exitCode, stdout } = await shell("sleep 600 & echo $!");
  assert.equal(exitCode, 0);
  process.kill(Number(stdout), "SIGKILL");
});

test("a program that takes too long is ended", async () => {
  const { exitCode, timedOut } = await run("sleep", ["600"], { timeoutMs: 50 });
  assert.deepEqual([exitCode, timedOut], [137, true]);
});

test("200 programs at once each get their own result", async () => {
  const results = await Promise.all(Array.from({ length: 200 }, (_, index) => shell(`echo ${index}; exit ${index}`)));
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
  assert.deepEqual([exitCode, timedOut], [137, false]);
});

test("when the helper process is killed, running programs fail and the next ones run", async () => {
  const helper = await helperPid();
  assert.notEqual(helper, process.pid);
  assert.match(readFileSync(`/proc/${helper}/cmdline`, "utf8"), /^perl/);
  const running = Array.from({ length: 20 }, () => shell("exec sleep 600"));
  await shell("true");
  const sleepers = childrenOf(helper);
  assert.equal(sleepers.length, 20);
  process.kill(helper, "SIGKILL");
  for (const { exitCode, stderr } of await Promise.all(running)) {
    assert.equal(exitCode, -1);
    assert.match(stderr, /SIGKILL/);
  }
  for (const pid of sleepers) process.kill(pid, "SIGKILL");
  const next = await Promise.all(Array.from({ length: 20 }, (_, index) => shell(`echo ${index}`)));
  assert.deepEqual(
    next.map(({ stdout }) => Number(stdout)),
    next.map((_, index) => index),
  );
});

test("the helper process is restarted however often it dies, even while nothing runs", async () => {
  for (let round = 0; round < 4; round++) {
    const helper = await helperPid();
    process.kill(helper, "SIGKILL");
    // Programs requested from a dying helper have failed.
    await until("another one works", async () => (await shell("true")).exitCode === 0);
    assert.notEqual(await helperPid(), helper);
  }
});

test("the helper process ignores requests to stop, since a shutdown needs programs", async () => {
  const helper = await helperPid();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(helper, signal);
  assert.equal(await helperPid(), helper);
});

test("the helper process ends with its worker", async () => {
  const program = `import { run } from ${JSON.stringify(new URL("../../../../../worker/runtime/process/run.ts", import.meta.url).href)};
    console.log((await run("sh", ["-c", "echo $PPID"], { timeoutMs: 30000 })).stdout);
    process.kill(process.pid, "SIGKILL");`;
  const { stdout } = await run(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], { timeoutMs });
  const helper = Number(stdout);
  assert.ok(helper > 1);
  await until("the helper is gone", () => !isAlive(helper));
});

async function helperPid(): Promise<number> {
  const { exitCode, stdout, stderr } = await shell("echo $PPID");
  assert.equal(exitCode, 0, stderr);
  return Number(stdout);
}

function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
  } catch {
    return false;
  }
}

test("what there was no time for can be tried again, and what failed cannot", async () => {
  const [late, failed] = [await shell("sleep 60", { timeoutMs: 100 }), await shell("echo no >&2; exit 1")];
  const errors = [late, failed].map((result) => programFailure("nothing was done", result));
  assert.deepEqual(
    errors.map(({ code, message }) => [code, message]),
    [
      ["unavailable", "nothing was done in time; try again later"],
      ["internal_error", "nothing was done"],
    ],
  );
  assert.equal((errors[1]?.cause as Error | undefined)?.message, "no");
});

test("a script in Perl has its arguments, input, output, folder and environment as when Perl runs it", async () => {
  const script = String.raw`
    use Cwd; my $own = shift;
    print join("|", $own, @ARGV, scalar(<STDIN>), getcwd(), scalar(keys %ENV));
    print STDERR "what it warns of\n";
    exit 7 if $ARGV[0];
    die "that is wrong\n"`;
  for (const wanted of ["1", "0"]) {
    const [own, loaded] = await Promise.all(
      [["perl"], ["env", "perl"]].map(([file = "", ...args]) =>
        run(file, [...args, "-e", script, "a b", wanted, "ü\n"], { timeoutMs, cwd: tmpdir(), input: "in\n" }),
      ),
    );
    assert.equal(own?.stdout, loaded?.stdout);
    assert.equal(own?.stderr, loaded?.stderr);
    assert.deepEqual([own?.exitCode, loaded?.exitCode !== 0], [wanted === "1" ? 7 : 1, true]);
  }
  assert.match((await run("perl", ["-e", "die {"], { timeoutMs })).stderr, /Missing right curly/);
});

test("a script in Perl is a process of its own, without the signal handlers of the one that starts programs", async () => {
  assert.equal((await run("perl", ["-e", "kill TERM => $$; sleep 60"], { timeoutMs })).exitCode, 128 + 15);
  assert.equal((await run("true", [], { timeoutMs })).exitCode, 0);
});
