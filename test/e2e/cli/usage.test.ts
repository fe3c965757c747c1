/** The command line itself: help, mistakes, where it finds gateway and key, logging in, completion. */
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { Cli } from "../../helpers/cli.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";

const { account, client } = await fixture(openClient());
const cli = fixture(new Cli(account.api));

const bare = { SANDGATE_URL: "", SANDGATE_API_KEY: "" };

test("help says all that there is, without any server", async () => {
  const { exitCode, stdout, stderr } = await cli.runWith({ env: bare }, "--help");
  assert.deepEqual([exitCode, stderr], [0, ""]);
  const names = "login logout create ls rm exec attach sessions cp stats logs snapshot clone restore snapshots admin completion".split(" ");
  for (const word of [...names, "First steps", "Exit codes", "SANDGATE_API_KEY"]) assert.ok(stdout.includes(word), word);
  assert.ok(!stdout.includes("__complete"));
  for (const name of names) {
    const help = await cli.runWith({ env: bare }, name, "--help");
    assert.equal(help.exitCode, 0);
    assert.match(help.stdout, new RegExp(`^Usage: sandgate ${name}`));
    assert.ok(help.stdout.includes("--json") && help.stdout.includes("--url"), name);
  }
  assert.match((await cli.runWith({ env: bare }, "--version")).stdout, /^\d+\.\d+\.\d+$/);
});

const mistakes: readonly [args: string[], exitCode: number, message: RegExp][] = [
  [["lss"], 2, /unknown command 'lss'\n\(Did you mean ls\?\)/],
  [["ls", "--colour"], 2, /unknown option '--colour'/],
  [["ls", "extra"], 2, /too many arguments/],
  [["snapshot"], 2, /missing required argument 'SANDBOX'/],
  [["rm"], 2, /which sandboxes\?/],
  [["rm", "--all", "web"], 2, /--all takes no names/],
  [["rm", "--all"], 2, /Without a terminal this needs --force/],
  [["create", "--cpus", "many"], 2, /--cpus takes a whole number from 1/],
  [["create", "-m", "2x"], 2, /--memory takes MiB/],
  [["create", "-e", "1=2"], 2, /--env takes NAME=VALUE/],
  [["create", "--network", "some"], 2, /--network takes none or outbound/],
  [["logs", "--since", "soon"], 2, /--since takes a time/],
  [["cp", "a", "b"], 2, /one of the two must be SANDBOX:PATH/],
  [["cp", "a", "web:relative"], 2, /must begin with \//],
  [["completion", "tcsh"], 2, /completion supports bash, zsh, fish/],
  [["ls", "--url", "localhost"], 2, /is not the address of a gateway/],
  [["exec"], 125, /missing required argument 'SANDBOX'/],
  [["exec", "web"], 125, /which command\?/],
  [["exec", "-it", "web"], 125, /standard input is not a terminal/],
  [["exec", "web", "true"], 125, /there is no sandbox web/],
];

test("wrong usage ends with its code and a message on standard error, and does nothing", async () => {
  const outcomes = await Promise.all(mistakes.map(async ([args, code, message]) => ({ args, code, message, ...(await cli.run(...args)) })));
  for (const { args, code, message, exitCode, stdout, stderr } of outcomes) {
    assert.deepEqual([exitCode, stdout], [code, ""], args.join(" "));
    assert.match(stderr, message);
    assert.match(stderr, /^sandgate: /);
  }
});

test("what the server refuses, or that there is none, is told without a stack", async () => {
  const refused = await cli.run("create", "localhost/no/such:image");
  assert.equal(refused.exitCode, 1);
  assert.match(refused.stderr, /^sandgate: .+ \(req_\w+\)$/);
  const unknown = await cli.runWith({ env: { SANDGATE_API_KEY: "sg_wrong" } }, "ls");
  assert.match(unknown.stderr, /^sandgate: Invalid API key\. .*\(req_\w+\)$/);
  assert.ok(!unknown.stderr.includes("sg_wrong"));
  const nobody = await cli.runWith({ env: { SANDGATE_URL: "http://127.0.0.1:9" } }, "exec", "sb_1", "true");
  assert.equal(nobody.exitCode, 125);
  assert.match(nobody.stderr, /^sandgate: no answer from http:\/\/127\.0\.0\.1:9: .*ECONNREFUSED/);
});

test("login tries the key and stores it for the person alone; it goes to no other server", async () => {
  const { apiKey, url } = account.api;
  const file = join(cli.folder, ".config/sandgate/config.json");
  assert.match((await cli.runWith({ env: bare }, "ls")).stderr, /there is no API key: run sandgate login/);
  const wrong = await cli.runWith({ env: bare, input: "sg_wrong\n" }, "login", "--key-stdin", "--url", url);
  assert.deepEqual([wrong.exitCode, wrong.stdout], [1, ""]);
  assert.throws(() => statSync(file));
  const done = await cli.runWith({ env: bare, input: `${apiKey}\n` }, "login", "--key-stdin", "--url", url);
  assert.equal(done.exitCode, 0, done.stderr);
  assert.ok(!done.stderr.includes(apiKey) && done.stderr.includes(url));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), { url, api_key: apiKey });
  assert.equal((await cli.runWith({ env: bare }, "ls", "-q")).exitCode, 0);
  const elsewhere = await cli.runWith({ env: bare }, "ls", "--url", "http://127.0.0.1:9");
  assert.match(elsewhere.stderr, /there is no API key for http:\/\/127\.0\.0\.1:9; the stored one is for/);
  writeFileSync(file, "{");
  assert.match((await cli.runWith({ env: bare }, "ls")).stderr, /is damaged: run sandgate login again/);
  assert.equal((await cli.runWith({ env: bare }, "logout")).exitCode, 0);
  assert.throws(() => statSync(file));
});

/** What a real bash offers when Tab is pressed after this line. */
async function completed(line: string): Promise<string[]> {
  const script = `PATH="$1:$PATH"; source <(sandgate completion bash); COMP_LINE="$2"; COMP_POINT=\${#COMP_LINE}; COMP_WORDBREAKS=' :'; compopt() { :; }; _sandgate; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await execa("bash", ["-c", script, "bash", cli.folder, line], { env: cli.environment, extendEnv: false });
  return stdout.split("\n").filter(Boolean);
}

test("bash completes commands, options, names and ids", async () => {
  const { id } = await client.sandboxes.create({ name: "web-one" });
  await client.sandboxes.create({ name: "web-two" });
  assert.deepEqual(await completed("sandgate sna"), ["snapshot", "snapshots"]);
  assert.ok((await completed("sandgate ")).includes("exec"));
  assert.deepEqual(await completed("sandgate create --ne"), ["--network"]);
  assert.deepEqual(await completed("sandgate exec -it web"), ["web-one", "web-two"]);
  assert.deepEqual(await completed(`sandgate rm ${id.slice(0, -2)}`), [id]);
  assert.deepEqual(await completed("sandgate exec web-one -- l"), []);
  assert.deepEqual(await completed("sandgate cp web-o"), ["web-one:"]);
  assert.deepEqual(await completed("sandgate completion "), ["bash", "fish", "zsh"]);
  assert.deepEqual(await completed("sandgate admin s"), ["sandboxes", "set", "set-key", "suspend"]);
  assert.deepEqual(await completed("sandgate admin --url http://localhost images "), ["rm"]);
  assert.deepEqual(await completed("sandgate admin set --def"), ["--default-limits"]);
  for (const shell of ["zsh", "fish"]) assert.ok((await cli.done("completion", shell)).includes("__complete"));
  await client.sandboxes.deleteAll();
});
