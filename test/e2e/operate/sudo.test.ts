/** `npm start` by a person who may use `sudo`: with everything that root's has, but walls between the parts. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { spawn } from "@lydell/node-pty";
import { Sandgate } from "../../../shared/client/index.ts";
import { loadConfig } from "../../../shared/config.ts";
import { asAccount } from "../../../systemd/base/as-account.ts";
import { instanceOf } from "../../../systemd/base/instance.ts";
import { run } from "../../../systemd/base/run.ts";
import { CliTerminal } from "../../helpers/cli.ts";
import { fixture } from "../../helpers/fixture.ts";
import { nobody, shellAs } from "../../helpers/local-users.ts";
import { groupsOf, leftBy, Sudoer } from "../../helpers/machine-users.ts";
import { checksIn } from "../../helpers/npm-start.ts";
import { testPort } from "../../helpers/ports.ts";
import { until } from "../../helpers/until.ts";

/** The first start builds the image, which takes half a minute on a quiet machine and minutes on a busy one. */
const startMs = 900_000;
const memory = 128;
const limits = ["memory", "cpu", "pids", "storage"];

const { account, app } = await fixture(Sudoer.make());
const port = await testPort();
const url = `http://127.0.0.1:${port}`;
// Where it is for a normal user who sets nothing.
const data = join(account.home, ".local/share/sandgate");
const instance = instanceOf(loadConfig({ SANDGATE_DATA_DIR: data }), { worker: account, gateway: account, nats: account });

/** Types `npm start` in a terminal of the person's own; resolves when everything is ready. */
async function start(): Promise<CliTerminal> {
  const env = {
    ...{ HOME: account.home, USER: account.name, LOGNAME: account.name, PATH: "/usr/local/bin:/usr/bin:/bin", TERM: "xterm" },
    ...{ SANDGATE_PORT: String(port), SANDGATE_METRICS_PORT: "0", SANDGATE_POOL_SIZE: "0", SANDGATE_SANDBOX_PIDS_MAX: "64" },
  };
  const [file = "", ...args] = asAccount(account, ["npm", "start"]);
  const terminal = fixture(new CliTerminal(spawn(file, args, { cwd: app, env, cols: 250, rows: 50, name: "xterm" })));
  const isOver = (): boolean => terminal.exitCode !== undefined || terminal.shown.includes("Sandgate is ready.");
  await until("it is ready", isOver, startMs).catch((error: Error) => assert.fail(`${error.message}\n${terminal.shown}`));
  assert.equal(terminal.exitCode, undefined, terminal.shown);
  return terminal;
}

async function interrupt(terminal: CliTerminal): Promise<void> {
  const from = terminal.shown.length;
  terminal.type("\x03");
  await terminal.sees("Stopped.", from);
  await terminal.ended();
  assert.deepEqual(await leftBy(instance), []);
}

test("the first start has everything, the kernel enforces every limit, and Ctrl-C leaves nothing", async () => {
  const terminal = await start();
  const said = stripVTControlCharacters(terminal.shown);
  assert.deepEqual(
    checksIn(said, "!").map(([name]) => name),
    ["users"],
    "one user for all parts, as the README says",
  );
  const checks = checksIn(said, "✓");
  for (const limit of limits)
    assert.deepEqual(
      checks.find(([name]) => name === `${limit}_limit`),
      [`${limit}_limit`, "enforced by the kernel"],
    );
  assert.deepEqual(
    checks.find(([name]) => name === "volume"),
    ["volume", instance.paths.volume],
  );

  const { apiKey } = instance.paths;
  assert.deepEqual([statSync(apiKey).uid, statSync(apiKey).mode & 0o777], [account.uid, 0o600]);
  await assert.rejects(shellAs(nobody, 'cat "$1"', apiKey), /Permission denied/);

  const client = new Sandgate({ baseUrl: url, apiKey: readFileSync(apiKey, "utf8").trim() });
  const sandbox = await client.sandboxes.create({ image: "default", name: "kept", resources: { memory, storage: 1 } });
  await sandbox.upload("/root/kept", "as it was");
  const { exit_code, error } = await sandbox.execute(`python3 -c 'b"x" * (${2 * memory} << 20)'`);
  assert.deepEqual([exit_code, error], [137, "out of memory: the sandbox reached its memory limit, and the kernel ended a process"]);
  const many =
    'import subprocess\nmade = []\ntry:\n  while True: made.append(subprocess.Popen(["sleep", "60"]))\nexcept OSError as e: print(len(made) < 64, e.strerror)\nfor one in made: one.kill()';
  assert.equal((await sandbox.execute(`python3 -c '${many}'`)).stdout, "True Resource temporarily unavailable\n");
  const quotas = await run(["grep", "-rhs", "--include=cpu.cfs_quota_us", "--include=cpu.max", "^[1-9]", ...(await groupsOf(account))]);
  assert.match(quotas, /^100000( 100000)?$/m, "one CPU");
  await interrupt(terminal);
});

test("the next start is quick, and has the sandbox again", async () => {
  const terminal = await start();
  const client = new Sandgate({ baseUrl: url, apiKey: readFileSync(instance.paths.apiKey, "utf8").trim() });
  const [sandbox] = await client.sandboxes.find("kept");
  assert.ok(sandbox);
  assert.equal((await sandbox.execute("cat /root/kept")).stdout, "as it was");
  // With a command in progress.
  const running = sandbox.execute("sleep 1000").catch((error: unknown) => error);
  await until("it runs", async () => (await sandbox.execute("pgrep -x sleep")).exit_code === 0);
  await interrupt(terminal);
  await running;
});
