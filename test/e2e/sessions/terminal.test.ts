/** Live sessions with a terminal: what people type into. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { Mark, Sandboxes } from "../../helpers/sandboxes.ts";
import { type SessionClient, start } from "../../helpers/sessions.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make();

/** The login shell, at its first prompt. */
async function shell(options: object = {}): Promise<SessionClient> {
  const client = await start(api, id, options);
  await client.sees("# ");
  return client;
}

/** Types a line and resolves with what was printed until a mark that follows it. */
async function line(client: SessionClient, text: string): Promise<string> {
  const mark = randomBytes(4).toString("hex");
  const from = client.text[1].length;
  client.type(`${text}; echo ${mark.slice(0, 4)}""${mark.slice(4)}\r`);
  await client.sees(`${mark}\r\n`, from);
  return client.text[1].slice(from);
}

async function leave(client: SessionClient): Promise<void> {
  client.send({ type: "kill" });
  await client.closed();
}

test("without a command there is a login shell whose terminal has a name, a size and a type", async () => {
  const client = await shell({ cols: 101, rows: 31 });
  assert.deepEqual([client.started?.tty, client.started?.writer, client.started?.offset], [true, true, 0]);
  assert.match(await line(client, "tty; stty size; echo $TERM"), /\/dev\/pts\/\d+\r\n31 101\r\nxterm-256color\r\n/);
  client.type("exit 3\r");
  assert.deepEqual(await client.closed(), { code: 1000, reason: "the session has ended" });
  assert.deepEqual(client.exit, { type: "exit", exit_code: 3 });
  assert.deepEqual(client.holes, []);
});

test("the terminal follows resize, and so does a program that waits for it", async () => {
  const client = await shell();
  client.send({ type: "resize", cols: 132, rows: 43 });
  await until("the new size", async () => (await line(client, "stty size")).includes("43 132"));
  client.type(`sh -c "trap 'echo now \\$(stty size)' WINCH; echo re''ady; while :; do sleep 0.1; done"\r`);
  await client.sees("ready\r\n");
  client.send({ type: "resize", cols: 60, rows: 20 });
  await client.sees("now 20 60");
  await leave(client);
});

test("Ctrl-C ends what runs in the foreground and nothing else", async () => {
  const client = await shell();
  client.type("sleep 600\r");
  await until("sleep runs", async () => (await api.execute(id, "pgrep -x sleep")).exit_code === 0);
  client.type("\x03");
  assert.match(await line(client, "echo code $?"), /code 130/);
  await leave(client);
});

test("a signal goes to what runs in the foreground", async () => {
  const client = await shell();
  client.type("sleep 600\r");
  await until("sleep runs", async () => (await api.execute(id, "pgrep -x sleep")).exit_code === 0);
  client.send({ type: "signal", signal: "TERM" });
  assert.match(await line(client, "echo code $?"), /code 143/);
  await leave(client);
});

test("Ctrl-Z stops a program, bg and fg set it going", async () => {
  const client = await shell();
  client.type("sleep 600\r");
  await until("sleep runs", async () => (await api.execute(id, "pgrep -x sleep")).exit_code === 0);
  client.type("\x1a");
  await client.sees("Stopped");
  assert.match(await line(client, "jobs"), /\[1\]\+ +Stopped +sleep 600/);
  client.type("fg\r");
  await until("sleep runs again", async () => /^S\S*\+/m.test((await api.execute(id, "ps -C sleep -o stat=")).stdout));
  client.type("\x03");
  assert.match(await line(client, "echo code $?"), /code 130/);
  await leave(client);
});

test("tab completes names", async () => {
  const client = await shell();
  client.type("ls -d /etc/debian_v\t");
  await client.sees("/etc/debian_version");
  client.type("\r");
  await leave(client);
});

test("a program that takes the whole screen draws it, takes keys and gives it back", async () => {
  const client = await shell();
  const from = client.text[1].length;
  client.type("top\r");
  await client.sees("load average", from);
  await client.sees("\x1b[H", from);
  const drawn = client.text[1].length;
  client.type("q");
  // It throws away what is typed before it has given the terminal back.
  await client.sees("# ", drawn);
  assert.match(await line(client, "echo code $?"), /code 0/);
  await leave(client);
});

test("vim edits a file on the whole screen", async () => {
  const client = await shell();
  const from = client.text[1].length;
  client.type("vim /root/poem\r");
  await client.sees('"~/poem" [New]', from);
  client.type("iroses are red\x1b:wq\r");
  await client.sees(/1L, 14B written[\s\S]*# /, from);
  assert.match(await line(client, "cat /root/poem"), /roses are red/);
  await leave(client);
});

test("less shows a page, searches, and goes by the size of the terminal", async () => {
  const client = await shell();
  const from = client.text[1].length;
  client.type("seq 1 5000 | less\r");
  await client.sees(/\r\n22\r\n23\r\n.*:/, from);
  client.type("/^4321$\r");
  // The last line of the page: what was typed is echoed before the page is drawn.
  await client.sees("4343", from);
  const found = client.text[1].length;
  client.send({ type: "resize", cols: 80, rows: 10 });
  await client.sees("4329", found);
  const resized = client.text[1].length;
  client.type(" ");
  await client.sees("4338", resized);
  client.type("q");
  assert.match(await line(client, "echo code $?"), /code 0/);
  await leave(client);
});

test("the end of input ends the shell", async () => {
  const client = await shell();
  client.send({ type: "stdin_close" });
  await client.closed();
  assert.equal(client.exit?.exit_code, 0);
});

test("a megabyte that is pasted comes back whole though it is echoed meanwhile", async () => {
  const bytes = 1024 * 1024;
  const hash = createHash("sha256");
  let received = 0;
  const client = await start(api, id, { command: `stty raw -echo; printf R; head -c ${bytes} | cat`, tty: true }, (chunk) => {
    if (received++ > 0) hash.update(chunk);
    else if (chunk.length > 1) hash.update(chunk.subarray(1));
  });
  await until("the program is ready", () => received > 0);
  const pasted = randomBytes(bytes);
  // As much as the protocol lets a client send ahead, and more only when it was taken.
  for (let at = 0; at < bytes; at += 65_536) {
    client.type(pasted.subarray(at, at + 65_536));
    await until("room for more input", () => at + 65_536 - taken(client) < 256 * 1024);
  }
  await client.closed();
  assert.equal(client.exit?.exit_code, 0);
  assert.equal(hash.digest("hex"), createHash("sha256").update(pasted).digest("hex"));
});

const taken = (client: SessionClient): number =>
  client.messages.reduce((offset, message) => (message.type === "input_ack" ? Math.max(offset, message.offset) : offset), 0);

test("the last output is complete though the command ends right after it", async () => {
  for (let round = 0; round < 10; round++) {
    const client = await start(api, id, { command: "stty -opost; head -c 300000 /dev/zero | tr '\\0' a; printf end", tty: true });
    await client.closed();
    assert.equal(client.text[1].length, 300_003);
    assert.ok(client.text[1].endsWith("aend"));
  }
});

test("a command in a terminal ends with its exit code, or the signal that ended it", async () => {
  const ended = async (command: string) => {
    const client = await start(api, id, { command, tty: true });
    await client.closed();
    return client.exit;
  };
  assert.deepEqual(await ended("exit 7"), { type: "exit", exit_code: 7 });
  assert.deepEqual(await ended("kill -TERM $$"), { type: "exit", exit_code: 143, signal: "SIGTERM" });
});

test("an interactive shell that ends after an interrupted command was not itself ended by a signal", async () => {
  const client = await shell();
  client.type("(exit 130)\r");
  client.type("exit\r");
  await client.closed();
  assert.deepEqual(client.exit, { type: "exit", exit_code: 130 });
});

test("kill ends the session with everything that it started", async () => {
  const mark = new Mark();
  const client = await shell({ env: mark.env });
  client.type("setsid sleep 617 & (sleep 617 &) & trap '' TERM HUP; sleep 617\r");
  await until("all run", async () => Number((await api.execute(id, "pgrep -cxf 'sleep 617'")).stdout) === 3);
  client.send({ type: "kill" });
  assert.equal((await client.closed()).code, 1000);
  assert.deepEqual(client.exit, { type: "exit", exit_code: 137, signal: "SIGKILL" });
  await mark.gone();
});

test("what a command put into the background outlives it, as with executions", async () => {
  const mark = new Mark();
  const client = await start(api, id, {
    command: "nohup setsid sleep 618 > /dev/null 2>&1 & until pgrep -xf 'sleep 618'; do :; done",
    tty: true,
    env: mark.env,
  });
  await client.closed();
  assert.deepEqual(client.exit, { type: "exit", exit_code: 0 });
  assert.equal(mark.living().length, 1);
  await api.execute(id, "pkill -KILL sleep");
  await mark.gone();
});
