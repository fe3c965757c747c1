/**
 * Programs that ask the terminal, and people who only watch: nothing that the terminal answers or that is typed at the
 * wrong time gets into a shell, be it in the sandbox or around the command line.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Session } from "../../../shared/client/index.ts";
import { Cli, type CliTerminal } from "../../helpers/cli.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { until } from "../../helpers/until.ts";

const { account, client } = await fixture(openClient());
const sessions: Session[] = [];
/** The latency to a terminal on the other side of the world. */
const lateMs = 250;
const cli = fixture(new Cli(account.api));
const sandbox = await client.sandboxes.create({ name: "box" });

/** An interactive shell of the person, in a terminal. */
async function host(): Promise<CliTerminal> {
  const terminal = fixture(cli.terminal("/bin/sh", ["-i"], { PS1: "host> ", ENV: "" }));
  await terminal.sees("host> ");
  return terminal;
}

/** Resolves when the shell has nothing else to read than what is typed now; returns what it showed since then. */
async function expectClean(terminal: CliTerminal, from: number): Promise<string> {
  const prompt = await terminal.sees("host> ", from);
  terminal.type('echo clean-$((6*7)); stty -a | grep -qw -- "-echo\\|-icanon\\|-opost" && echo RA""W\r');
  await terminal.sees(/clean-42\r\nhost> $/, prompt);
  const shown = terminal.shown.slice(from);
  assert.doesNotMatch(shown, /not found|;2R|;84R|\$y|\$r|RAW|rgb:/);
  return shown;
}

test("vim is left and joined again, and its questions are answered once", async () => {
  const terminal = await host();
  const asked = terminal.answering(lateMs);
  terminal.type("./sandgate exec -it box\r");
  await terminal.sees(/# $/);
  // As large builds of vim do: ask, read the answers, go on with them.
  terminal.type("stty -echo raw; printf '\\033[6n\\033[>c\\033]11;?\\007'; head -c 43 > /tmp/answers; stty sane; vi /tmp/note\r");
  await terminal.sees(/\?1049h[\s\S]*~[\s\S]*~/);
  assert.deepEqual(asked.slice(0, 3), ["\u001b[6n", "\u001b[>c", "\u001b]11;?\u0007"]);
  terminal.type("\u0010\u0011");
  const left = await terminal.sees(/\r\nThe session goes on for 1 hour when nobody is attached to it; this joins it again: sandgate attach \S+ sess_\w+\r+\n/);
  assert.ok(terminal.shown.lastIndexOf("\u001b[?1047l", left) > terminal.shown.lastIndexOf("~", left), "the other screen is left");
  const [, id = ""] = /sandgate attach \S+ (sess_\w+)/.exec(terminal.shown) ?? [];
  await expectClean(terminal, left);

  const [before, former] = [asked.length, asked.slice(0, 3)];
  const askedAgain = (): string[] => asked.slice(before).filter((question) => former.includes(question));
  const joined = terminal.shown.length;
  terminal.type(`./sandgate attach box ${id}\r`);
  await terminal.sees("~", joined);
  terminal.type(":r !echo written-$((6*7))\r");
  await terminal.sees("written-42", joined);
  assert.deepEqual(askedAgain(), [], "the replay asked nothing");
  terminal.type(":q!\r");
  await terminal.sees(/\?1049l[\s\S]*# $/, joined);
  terminal.type("\u0010\u0011");
  await expectClean(terminal, await terminal.sees(/The session goes on .*\r+\n/, joined));

  // Now a shell would read the answers.
  const last = terminal.shown.length;
  terminal.type(`./sandgate attach box ${id}\r`);
  await terminal.sees(/\?1049l[\s\S]*# $/, last);
  terminal.type("echo box-$((6*7)); exit\r");
  const end = await terminal.sees("box-42\r\n", last);
  assert.doesNotMatch(terminal.shown.slice(last, end), /not found|;2R|rgb:/);
  assert.deepEqual(askedAgain(), []);
  await expectClean(terminal, end);
});

test("answers that are still on their way at the end go to nobody", async () => {
  const terminal = await host();
  // Later than the command line takes to end.
  const asked = terminal.answering(4 * lateMs);
  terminal.type("./sandgate exec -it box -- sh -c 'printf \"\\033[6n\\033[>c\\033]11;?\\007\"; exit 7'\r");
  const ended = await terminal.sees("]11;?\u0007");
  await terminal.sees("host> ", ended);
  await until("all was answered", () => asked.length >= 3 && terminal.answered === asked.length);
  const shown = await expectClean(terminal, ended);
  assert.ok(!shown.includes("goes on"));
  terminal.type("exit 3\r");
  assert.equal(await terminal.ended(), 3);
});

test("a terminal that was asked and does not answer is given back all the same", async () => {
  const terminal = await host();
  terminal.type("./sandgate exec -it box -- printf '\\033[6n'\r");
  await expectClean(terminal, await terminal.sees("\u001b[6n"));
});

/** A command in a terminal that another client writes to. */
async function taken(command: string): Promise<Session> {
  const session = await sandbox.session({ command, tty: true, cols: 80, rows: 24 });
  sessions.push(session);
  return session;
}

for (const { option, key, says } of [
  { option: "--no-takeover", key: "\u0003", says: "Another client writes to this session: you only watch" },
  { option: "--no-takeover", key: "\u0010\u0011", says: "Another client writes to this session: you only watch" },
  { option: "--read-only", key: "\u0003", says: "You only watch" },
  { option: "--read-only", key: "\u0010\u0011", says: "You only watch" },
]) {
  test(`attach ${option} is left by ${JSON.stringify(key)}; what is typed is neither shown nor given to any shell`, async () => {
    const session = await taken("echo begun; read a; echo got $a; cat");
    const terminal = await host();
    terminal.type(`./sandgate attach ${option} box ${session.id}\r`);
    const joined = await terminal.sees("begun\r\n", await terminal.sees(says));
    terminal.type("stray-keys\r");
    await session.write("own\r");
    await terminal.sees("got own\r\n", joined);
    terminal.type(key);
    const left = await terminal.sees(/\r\nThe session goes on; this joins it again: sandgate attach \S+ sess_\w+\r+\n/, joined);
    await expectClean(terminal, left);
    assert.ok(!terminal.shown.slice(joined).includes("stray-keys"), JSON.stringify(terminal.shown.slice(joined)));
    const [known] = (await sandbox.sessions()).filter(({ session_id }) => session_id === session.id);
    assert.equal(known?.status, "running");
    session.kill();
  });
}

test("without a terminal of its own, a watcher leaves by SIGINT and by SIGTERM", async () => {
  const session = await taken("echo begun; cat");
  for (const signal of ["INT", "TERM"]) {
    const terminal = await host();
    terminal.type(`sh -c 'echo $$ > pid; exec ./sandgate attach --read-only box ${session.id}' < /dev/null\r`);
    const at = await terminal.sees(/begun\r+\n/);
    const other = await host();
    other.type(`kill -${signal} $(cat pid)\r`);
    await expectClean(terminal, await terminal.sees(/The session goes on; .*\r+\n/, at));
  }
  session.kill();
});

test("detach keys of one who writes are not for the others, and a session taken over gives the terminal back", async () => {
  const session = await taken("echo begun; cat");
  const terminal = await host();
  terminal.type(`./sandgate attach box ${session.id}\r`);
  const at = await terminal.sees("begun\r\n");
  await assert.rejects(session.wait(), /another client has taken the session over/);
  const again = await sandbox.attach(session.id, { takeover: true });
  sessions.push(again);
  await expectClean(terminal, await terminal.sees("sandgate: another client has taken the session over", at));
  again.kill();
});
