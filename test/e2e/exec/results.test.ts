/** execute: what a result says, and how a command is run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type ExecuteResult } from "../../helpers/api.ts";
import { expectError, isoTime } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const commandBytesMax = 131_072;

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make({ env_vars: { COLOUR: "blue", SHAPE: "round" } });

async function outputOf(command: string, options: Record<string, unknown> = {}): Promise<string> {
  const { stdout, stderr, exit_code } = await api.execute(id, command, options);
  assert.equal(exit_code, 0, stderr);
  return stdout;
}

const call = (body: Record<string, unknown>) => api.call<ExecuteResult>("POST", `/v1/sandboxes/${id}/execute`, body);

test("a result has exactly the fields of the API", async () => {
  const before = Date.now();
  const result = await api.execute(id, "echo out; echo err >&2; exit 7");
  assert.deepEqual(Object.keys(result).sort(), ["completed_at", "created_at", "execution_time_ms", "exit_code", "id", "status", "stderr", "stdout"]);
  assert.match(result.id, /^exec_[0-9a-z]{26}$/);
  assert.deepEqual([result.status, result.exit_code, result.stdout, result.stderr], ["completed", 7, "out\n", "err\n"]);
  for (const time of [result.created_at, result.completed_at]) assert.match(time, isoTime);
  assert.ok(Number.isInteger(result.execution_time_ms));
  assert.equal(Date.parse(result.completed_at) - Date.parse(result.created_at), result.execution_time_ms);
  assert.ok(Date.parse(result.created_at) >= before && Date.parse(result.completed_at) <= Date.now());
});

const exitCodes: Record<string, number> = {
  true: 0,
  "exit 1": 1,
  "exit 255": 255,
  "kill -KILL $$": 137,
  "kill -TERM $$": 143,
  "kill -SEGV $$": 139,
  "no-such-program": 127,
  "/etc/passwd": 126,
  "if then": 2,
};
for (const [command, code] of Object.entries(exitCodes)) {
  test(`\`${command}\` ends with exit code ${code}`, async () => {
    const { exit_code, status } = await api.execute(id, command);
    assert.deepEqual([status, exit_code], ["completed", code]);
  });
}

test("ids of executions are never the same", async () => {
  const results = await Promise.all(Array.from({ length: 10 }, () => api.execute(id, "true")));
  assert.equal(new Set(results.map((result) => result.id)).size, 10);
});

test("the environment is the sandbox's, and the call's own variables win", async () => {
  assert.equal(await outputOf("echo $COLOUR $SHAPE"), "blue round\n");
  assert.equal(await outputOf("echo $COLOUR $SHAPE $SIZE", { env: { SHAPE: "square", SIZE: 'a "b"\n$c €' } }), 'blue square a "b" $c €\n');
  assert.equal(await outputOf("echo $SHAPE$SIZE"), "round\n", "the variables of one call are not kept");
  assert.equal(await outputOf("echo $PATH", { env: { PATH: "/bin" } }), "/bin\n");
  assert.equal(await outputOf("printenv EMPTY", { env: { EMPTY: "" } }), "\n");
});

test("a command runs in working_dir, through symlinks as well", async () => {
  await outputOf("mkdir -p '/srv/a dir' && ln -sfn '/srv/a dir' /srv/link");
  assert.equal(await outputOf("pwd", { working_dir: "/srv/a dir" }), "/srv/a dir\n");
  assert.equal(await outputOf("pwd -P", { working_dir: "/srv/link" }), "/srv/a dir\n");
});

test("a working_dir that is missing, a file or not absolute is refused and nothing runs", async () => {
  for (const working_dir of ["/no/such/dir", "/etc/passwd", "/proc/self/fd/7"]) {
    expectError(await call({ command: "touch /srv/ran", working_dir }), "unprocessable", /working_dir/, "no_such_working_dir");
  }
  expectError(await call({ command: "touch /srv/ran", working_dir: "srv" }), "invalid_request", /working_dir/);
  expectError(await call({ command: "touch /srv/ran", working_dir: "/srv\0/x" }), "invalid_request", /working_dir/);
  assert.equal(await outputOf("ls /srv/ran 2>/dev/null || echo none"), "none\n");
});

test("a working_dir cannot lead to directories that the runtime holds open on the host", async () => {
  for (let fd = 0; fd < 20; fd++) {
    await outputOf(`ln -sfn /proc/self/fd/${fd} /srv/fd`);
    expectError(await call({ command: "ls", working_dir: "/srv/fd" }), "unprocessable", /working_dir/, "no_such_working_dir");
  }
});

test("pipes, redirects, chains, here-documents and /dev/stdout work", async () => {
  assert.equal(await outputOf("printf 'b\\na\\n' | sort | tr -d '\\n'; false || echo; cat <<END\nhere\nEND"), "ab\nhere\n");
  const { stdout, stderr } = await api.execute(id, "echo 1 > /dev/stdout; echo 2 > /dev/stderr; echo 3 > /dev/fd/2; (echo 4 >&2) 2>&1; echo 5 > /dev/null");
  assert.deepEqual([stdout, stderr], ["1\n4\n", "2\n3\n"]);
});

test("standard input is empty, not a terminal and not held open", async () => {
  assert.equal(await outputOf("cat; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none"), "none\n");
});

const paddings: Record<string, string> = { "one byte": "x", "two bytes": "ß", "three bytes": "€", "four bytes": "😀" };
for (const [size, character] of Object.entries(paddings)) {
  test(`a command of exactly 128 KiB in characters of ${size} runs, one byte more is refused`, async () => {
    const body = (bytes: number): string => {
      const [start, end] = ["printf '%s|%s' $# '", "' | tee /tmp/long | wc -c; head -c 2 /tmp/long"];
      const room = bytes - Buffer.byteLength(start + end);
      const count = Math.floor(room / Buffer.byteLength(character));
      return start + character.repeat(count) + "y".repeat(room - count * Buffer.byteLength(character)) + end;
    };
    const command = body(commandBytesMax);
    assert.equal(Buffer.byteLength(command), commandBytesMax);
    const written = commandBytesMax - Buffer.byteLength("printf '%s|%s' $# '' | tee /tmp/long | wc -c; head -c 2 /tmp/long") + 2;
    assert.equal(await outputOf(command), `${written}\n0|`);
    expectError(await call({ command: body(commandBytesMax + 1) }), "invalid_request", /131072/);
  });
}

test("commands that are no text, empty or hold a NUL are refused", async () => {
  for (const command of [undefined, "", "echo a\0b", 5, null, ["ls"]]) expectError(await call({ command }), "invalid_request", /command/);
});

test("timeout and env of a wrong type or out of bounds are refused", async () => {
  for (const timeout of [0, 301, 1.5, "5"]) expectError(await call({ command: "true", timeout }), "invalid_request", /timeout/);
  for (const env of [{ A: 1 }, { "A=B": "c" }, { "1A": "b" }, { A: "b\0c" }, ["A"]])
    expectError(await call({ command: "true", env }), "invalid_request", /env/);
});

test("a command in a sandbox that does not exist is not found", async () => {
  expectError(await api.call("POST", "/v1/sandboxes/sb_00000000000000000000000000/execute", { command: "true" }), "not_found");
});
