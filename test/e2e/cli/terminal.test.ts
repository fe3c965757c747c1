/** The command line in a real pseudo-terminal: a shell with resize, leaving and joining it, questions, the progress bar. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Cli, type CliTerminal } from "../../helpers/cli.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { until } from "../../helpers/until.ts";

const { account, client } = await fixture(openClient());
const cli = fixture(new Cli(account.api));
const sandbox = await client.sandboxes.create({ name: "box" });

/** Runs it in a shell of a terminal, which says how the terminal was left and with which exit code. */
function shell(...args: string[]): CliTerminal {
  const script = 'sh -c "echo \\$\\$ > pid; exec \\"\\$@\\"" sh "$@"; code=$?; stty -a | grep -qw -- -icanon && echo LEFT-RAW; echo "ended with $code"';
  const terminal = fixture(cli.terminal("/bin/sh", ["-c", script, "sh", cli.path, ...args]));
  return terminal;
}

test("exec -it without a command is the login shell", async () => {
  const terminal = shell("exec", "-it", "box");
  await terminal.sees(/[#$] $/);
  terminal.type("exit 42\r");
  await terminal.sees("ended with 42\r\n");
  assert.ok(!terminal.shown.includes("LEFT-RAW"));
});

test("exec -it is a terminal: keys, size and its change, Ctrl-C, line ends, exit code", async () => {
  const terminal = shell("exec", "-it", "box", "--", "sh");
  await terminal.sees("# ");
  terminal.type("tty; stty size; echo $TERM\r");
  await terminal.sees(/\r\n\/dev\/pts\/\d+\r\n30 90\r\nxterm-256color\r\n/);
  terminal.resize(70, 20);
  await until("the sandbox knows the new size", async () => {
    terminal.type("stty size\r");
    return terminal.shown.includes("20 70");
  });
  terminal.type("cat\rtyped\r");
  const at = await terminal.sees(/typed\r\n[\s\S]*typed\r\n/);
  terminal.type("\u0003");
  const after = await terminal.sees(/\^C[\s\S]*# $/, at);
  terminal.type("echo code:$?\r");
  await terminal.sees("code:130\r\n", after);
  terminal.type("exit 42\r");
  await terminal.sees("ended with 42\r\n");
  assert.equal(await terminal.ended(), 0);
  assert.ok(!terminal.shown.includes("LEFT-RAW"));
});

test("ctrl-p ctrl-q leaves a session, and attach joins it again", async () => {
  const terminal = shell("exec", "-it", "box", "--", "sh", "-c", "echo begun; read a; echo got $a; read b; exit 9");
  await terminal.sees("begun\r\n");
  // The keys in two pieces, and a ctrl-p before that is none of theirs.
  terminal.type("x\u0010y\u0010");
  terminal.type("\u0011");
  await terminal.sees(/sandgate attach \S+ sess_\w+/);
  await terminal.sees("ended with 0\r\n");
  assert.ok(!terminal.shown.includes("LEFT-RAW"));
  const [, id = ""] = /sandgate attach \S+ (sess_\w+)/.exec(terminal.shown) ?? [];
  assert.match((await cli.done("sessions", "box")).split("\n").find((line) => line.startsWith(id)) ?? "", /running +yes +0/);
  const again = shell("attach", "box", id.slice(0, -2));
  await again.sees("begun\r\n");
  again.type("\u007f\u007f\u007fjoined\r");
  await again.sees("got joined\r\n");
  again.type("\r");
  await again.sees("ended with 9\r\n");
});

test("a signal ends the command and gives the terminal back", async () => {
  for (const signal of ["SIGTERM", "SIGHUP"] as const) {
    const terminal = shell("exec", "-it", "box", "--", "sh", "-c", "echo begun; sleep 1000");
    await terminal.sees("begun");
    process.kill(Number(readFileSync(join(cli.folder, "pid"), "utf8")), signal);
    await terminal.sees("ended with 137\r\n");
    assert.ok(!terminal.shown.includes("LEFT-RAW"));
  }
});

test("Ctrl-C ends a command without a terminal of its own, with 130", async () => {
  const terminal = shell("exec", "box", "--", "sh", "-c", "echo begun; sleep 1000");
  await terminal.sees("begun");
  terminal.type("\u0003");
  // The shell around it is interrupted too.
  await terminal.ended();
  await until("no session runs", async () => (await sandbox.sessions()).every(({ status }) => status === "ended"));
});

test("login asks, and does not show the key", async () => {
  const { url, apiKey } = account.api;
  const terminal = fixture(cli.terminal(cli.path, ["login"], { SANDGATE_API_KEY: "", SANDGATE_URL: "http://127.0.0.1:9" }));
  await terminal.sees("Gateway [http://127.0.0.1:9]: ");
  terminal.type(`${url}\r`);
  await terminal.sees("API key");
  terminal.type(`${apiKey}\r`);
  await terminal.sees(/Logged in to http.* as tester/);
  assert.equal(await terminal.ended(), 0);
  assert.ok(!terminal.shown.includes(apiKey));
  assert.equal(JSON.parse(readFileSync(join(cli.folder, ".config/sandgate/config.json"), "utf8")).api_key, apiKey);
});

test("rm --all asks first", async () => {
  const no = shell("rm", "--all");
  await no.sees("with their files? [y/N] ");
  no.type("n\r");
  await no.sees("nothing was changed");
  await no.sees("ended with 1\r\n");
  assert.equal((await cli.done("ls", "-q")).split("\n").length, 1);
});

test("cp shows how far it is on a terminal, and leaves only its result", async () => {
  writeFileSync(join(cli.folder, "large"), new Uint8Array(30_000_000));
  const terminal = shell("cp", "large", "box:/work/large");
  await terminal.sees(/Copying [█░]+ \d+ % {2}[\d.]+ MiB of 28\.6 MiB/);
  await terminal.sees("Copied 1 file, 28.6 MiB");
  await terminal.sees("ended with 0\r\n");
  assert.equal(await cli.done("exec", "box", "--", "stat", "-c", "%s", "/work/large"), "30000000");
});
