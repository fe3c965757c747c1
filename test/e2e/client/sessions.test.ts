/** Live sessions of the client library: input and output, terminals, connections that break, leaving and joining again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NotFoundError, Sandgate, SandgateError, type Session, session as tokenSession, UnprocessableEntityError } from "../../../shared/client/index.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { TestNetwork } from "../../helpers/network.ts";
import { until } from "../../helpers/until.ts";

const { account, client } = await fixture(openClient());
/** The same sandbox, by way of the proxy. */
const sandbox = await client.sandboxes.create();
const proxy = await fixture(TestNetwork.to(account.api.url));
const far = new Sandgate({ baseUrl: proxy.url, apiKey: account.api.apiKey }).sandbox(sandbox.id);

interface Read {
  readonly stdout: string;
  readonly stderr: string;
}

/** All output; each byte must come once. */
async function read(session: Session): Promise<Read> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  const texts = { stdout: "", stderr: "" };
  let next: number | undefined;
  for await (const { stream, bytes, offset } of session) {
    if (next !== undefined) assert.equal(offset, next, "output has a hole, or came twice");
    next = offset + bytes.length;
    texts[stream] += decoders[stream].decode(bytes, { stream: true });
  }
  return texts;
}

const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");

test("a command gets input, gives output on both channels and ends with its exit code", async () => {
  const session = await sandbox.session({ command: "read line; echo got $line $A in $PWD; echo oops >&2; exit 5", env: { A: "1" }, working_dir: "/tmp" });
  assert.match(session.id, /^sess_\w+$/);
  await session.write("hello\n");
  assert.deepEqual(await read(session), { stdout: "got hello 1 in /tmp\n", stderr: "oops\n" });
  assert.deepEqual([await session.exited, session.tty], [{ exit_code: 5 }, false]);
  await session.closeStdin();
  await assert.rejects(session.write("late"), SandgateError);
  await assert.rejects(read(session), /only once/);
});

test("large input waits for the program, and its end is told", async () => {
  const session = await sandbox.session({ command: "sleep 0.3; wc -c" });
  const bytes = new Uint8Array(3_000_000);
  await session.write(bytes);
  await session.closeStdin();
  assert.deepEqual([(await read(session)).stdout, await session.exited], ["3000000\n", { exit_code: 0 }]);
});

test("a terminal has its size, takes keys, and Ctrl-D ends its shell", async () => {
  const session = await sandbox.session({ cols: 100, rows: 30 });
  let shown = "";
  const reading = (async () => {
    for await (const { bytes } of session) shown += new TextDecoder().decode(bytes);
  })();
  await session.write("stty size\n");
  await until("its size is shown", () => shown.includes("30 100"));
  session.resize(70, 20);
  await until("its new size is shown", async () => {
    await session.write("stty size\n");
    return shown.includes("20 70");
  });
  // A program that has the terminal when it says so: an earlier Ctrl-C would be the shell's.
  await session.write("sh -c 'echo sleeps; exec sleep 1000'\n");
  await until("it sleeps", () => /[\r\n]sleeps\r\n/.test(shown));
  await session.write("\u0003");
  await until("Ctrl-C was felt", () => /\^C[\s\S]*[#$] $/.test(shown));
  await session.write("echo code:$?\n");
  await until("there is a prompt again", () => /code:130\r\n[\s\S]*[#$] $/.test(shown));
  await session.closeStdin();
  await reading;
  assert.equal(session.tty, true);
  assert.ok((await session.exited).exit_code >= 0);
});

test("signals and kill reach the command", async () => {
  const trapped = await sandbox.session({ command: "trap 'echo caught; exit 3' USR1; echo ready; read line" });
  let text = "";
  for await (const { bytes } of trapped) {
    text += new TextDecoder().decode(bytes);
    if (text === "ready\n") trapped.signal("USR1");
  }
  assert.deepEqual([text, await trapped.exited], ["ready\ncaught\n", { exit_code: 3 }]);
  const killed = await sandbox.session({ command: "sleep 1000" });
  killed.kill();
  assert.deepEqual(await killed.wait(), { exit_code: 137, signal: "SIGKILL" });
  const controller = new AbortController();
  const aborted = await sandbox.session({ command: "sleep 1000", signal: controller.signal });
  controller.abort();
  assert.equal((await aborted.wait()).exit_code, 137);
});

test("a connection that breaks is made again: no byte of output is lost or comes twice", async () => {
  const changes: boolean[] = [];
  // Less than the session keeps of its output: a command that goes on with nobody attached drops the oldest.
  const session = await far.session({ command: "seq 150000", onConnection: (isThere) => changes.push(isThere) });
  let text = "";
  let next = 0;
  for await (const { bytes, offset } of session) {
    assert.equal(offset, next);
    next += bytes.length;
    text += new TextDecoder().decode(bytes);
    if (changes.length < 6 && text.length > (changes.length / 2 + 1) * 200_000) {
      proxy.cut();
      await until("it is there again", () => changes.at(-1) === true);
    }
  }
  assert.deepEqual(await session.exited, { exit_code: 0 });
  assert.ok(text === numbers(150_000));
  assert.deepEqual(changes, [false, true, false, true, false, true]);
});

test("what is written while the connection breaks arrives once", async () => {
  const changes: boolean[] = [];
  const session = await far.session({ command: "cat", onConnection: (isThere) => changes.push(isThere) });
  const reading = read(session);
  for (let line = 1; line <= 20_000; line++) {
    const written = session.write(`${line}\n`);
    // Some of it is on its way, some in the client, some with the program.
    if (line % 5_000 === 0) proxy.cut();
    await written;
  }
  await session.closeStdin();
  const { stdout } = await reading;
  assert.deepEqual(await session.exited, { exit_code: 0 });
  assert.ok(stdout === numbers(20_000));
  assert.ok(changes.includes(true));
});

test("a network that is away for a while is waited for", async () => {
  const changes: boolean[] = [];
  const session = await far.session({ command: "read line; echo $line", onConnection: (isThere) => changes.push(isThere) });
  proxy.down();
  await until("it is noticed", () => changes.includes(false));
  session.resize(10, 10);
  await session.write("patience\n");
  proxy.up();
  assert.equal((await read(session)).stdout, "patience\n");
});

test("a session that was left goes on, is listed, and joined from its beginning", async () => {
  const session = await sandbox.session({ command: "echo before; read line; echo $line; exit 4", detach_timeout: 60 });
  await until("it has begun", async () => (await sandbox.sessions()).some(({ session_id }) => session_id === session.id));
  session.detach();
  assert.equal(await session.exited.catch((error: Error) => error.message), "the session was left");
  const listed = (await sandbox.sessions()).find(({ session_id }) => session_id === session.id);
  assert.deepEqual([listed?.status, listed?.tty], ["running", false]);
  const joined = await sandbox.attach(session.id, { since: 0 });
  const watching = await sandbox.attach(session.id, { since: 0, read_only: true });
  assert.deepEqual([joined.isWriter, watching.isWriter], [true, false]);
  await assert.rejects(watching.write("x"), /another client writes/);
  await joined.write("after\n");
  assert.deepEqual([await read(joined), await joined.exited], [{ stdout: "before\nafter\n", stderr: "" }, { exit_code: 4 }]);
  assert.equal((await read(watching)).stdout, "before\nafter\n");
});

test("one who takes the session over is the one who writes, and the other is told", async () => {
  const first = await sandbox.session({ command: "cat" });
  const second = await sandbox.attach(first.id, { takeover: true });
  await assert.rejects(read(first), /taken the session over/);
  await second.write("mine\n");
  await second.closeStdin();
  assert.equal((await read(second)).stdout, "mine\n");
});

test("those who watch a terminal know its size, and who only watches ends nothing", async () => {
  const sizes: unknown[] = [];
  const writer = await sandbox.session({ command: "cat", tty: true, cols: 100, rows: 30 });
  {
    await using reader = await sandbox.attach(writer.id, { read_only: true, onResize: (size) => sizes.push(size) });
    assert.deepEqual(reader.size, { cols: 100, rows: 30 });
    writer.resize(90, 20);
    await until("the reader knows", () => sizes.length > 0);
    assert.deepEqual([sizes, reader.size, writer.size], [[{ cols: 90, rows: 20 }], { cols: 90, rows: 20 }, { cols: 90, rows: 20 }]);
    reader.resize(10, 10);
  }
  await writer.write("still here\n");
  await writer.closeStdin();
  assert.match((await read(writer)).stdout, /still here/);
});

test("output that nobody kept is told as a gap", async () => {
  const gaps: [number, number][] = [];
  const session = await sandbox.session({ command: "head -c 3000000 /dev/zero; echo end" });
  session.detach();
  await until("it has ended", async () => (await sandbox.sessions()).some(({ session_id, status }) => session_id === session.id && status === "ended"));
  const late = await sandbox.attach(session.id, { since: 0, onGap: (from, to) => gaps.push([from, to]) });
  let bytes = 0;
  for await (const output of late) bytes += output.bytes.length;
  assert.equal(gaps.length, 1);
  const [[from, to]] = gaps as [[number, number]];
  assert.deepEqual([from, to + bytes], [0, 3_000_004]);
});

test("what cannot be started or joined is refused with the API's errors", async () => {
  await assert.rejects(sandbox.session({ command: "true", working_dir: "/none/such" }), UnprocessableEntityError);
  await assert.rejects(sandbox.attach("sess_none"), NotFoundError);
  const error = await client
    .sandbox("sb_none")
    .session({ command: "true" })
    .catch((thrown: NotFoundError) => thrown);
  assert.ok(error instanceof NotFoundError);
  assert.match(error.requestId ?? "", /^req_/);
  const reason = new Error("enough");
  await assert.rejects(sandbox.session({ command: "true", signal: AbortSignal.abort(reason) }), reason);
});

test("a token opens one session without a key, and joins it again where there are more tokens", async () => {
  const { url } = account.api;
  const { token } = await sandbox.sessionToken();
  const once = await tokenSession({ url, sandboxId: sandbox.id, token, command: "echo by token" });
  assert.equal((await read(once)).stdout, "by token\n");
  await assert.rejects(tokenSession({ url, sandboxId: sandbox.id, token, command: "true" }), { status: 401 });
  const changes: boolean[] = [];
  const fresh = async (): Promise<string> => (await sandbox.sessionToken()).token;
  const lasting = await tokenSession({
    url: proxy.url,
    sandboxId: sandbox.id,
    token: fresh,
    command: "read line; echo $line",
    onConnection: (isThere) => changes.push(isThere),
  });
  proxy.cut();
  await lasting.write("again\n");
  assert.equal((await read(lasting)).stdout, "again\n");
  assert.deepEqual(changes, [false, true]);
});

test("await using ends the command", async () => {
  let id = "";
  {
    await using session = await sandbox.session({ command: "sleep 1000" });
    id = session.id;
  }
  const listed = (await sandbox.sessions()).find(({ session_id }) => session_id === id);
  assert.notEqual(listed?.status, "running");
});

test("await using ends a command whose output is not read to its end", async () => {
  let id = "";
  {
    await using session = await sandbox.session({ command: "yes" });
    id = session.id;
    for await (const { bytes } of session) if (bytes.length > 0) break;
  }
  assert.equal(
    (await sandbox.sessions()).some(({ session_id, status }) => session_id === id && status === "running"),
    false,
  );
});

test("wait goes on where reading has stopped", async () => {
  const session = await sandbox.session({ command: "seq 1 400000; exit 3" });
  for await (const { bytes } of session) if (bytes.length > 0) break;
  assert.deepEqual(await session.wait(), { exit_code: 3 });
});
