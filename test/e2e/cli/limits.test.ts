/** Commands that exceed the rate limit wait and continue, whatever they were about to send. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { Sandgate } from "../../../shared/client/index.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { Cli } from "../../helpers/cli.ts";
import { fixture } from "../../helpers/fixture.ts";
import { sharedStack } from "../../helpers/shared.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
// One a second, and never two at once.
const { api } = await accounts.make("slow", { tier: "enterprise", limits: { requests_per_minute: 60, burst: 1, sandboxes: 2 } });
const cli = fixture(new Cli(api));
const sandbox = await cli.done("create", "-n", "box");

test("every kind of command at once: all are done, and those that waited say so", async () => {
  mkdirSync(join(cli.folder, "tree"));
  for (const name of ["one", "two"]) writeFileSync(join(cli.folder, "tree", name), randomBytes(2_000_000));
  const piped = (command: string) =>
    execa("bash", ["-o", "pipefail", "-c", command], { cwd: cli.folder, env: cli.environment, extendEnv: false, reject: false });
  const outcomes = await Promise.all([
    cli.run("ls"),
    cli.run("ls"),
    cli.run("exec", "box", "echo", "hello"),
    cli.run("exec", "box", "echo", "hello"),
    cli.run("cp", "tree", "box:/work/tree"),
    cli.run("cp", "tree/one", "box:/work/one"),
    cli.run("snapshot", "box", "--name", "kept"),
    cli.run("logs", "box"),
    piped("tar -c tree | ./sandgate cp - box:/tmp"),
  ]);
  for (const { exitCode, stderr } of outcomes) assert.equal(exitCode, 0, stderr);
  const waited = outcomes.filter(({ stderr }) => /^sandgate: request limit reached; continuing in \d+ s$/m.test(stderr));
  assert.ok(waited.length >= outcomes.length / 2, `${waited.length} waited`);
  assert.deepEqual([outcomes[2].stdout, outcomes[3].stdout], ["hello", "hello"]);
  const sums = await cli.done("exec", "box", "cd /work && cmp one tree/one && cmp tree/two /tmp/tree/two && echo same");
  assert.equal(sums, "same");
  await cli.done("snapshots", "rm", "--all", "-f");
});

test("the client waits only when it is asked to, and never twice for what it cannot send again", async () => {
  const { SANDGATE_URL: baseUrl = "", SANDGATE_API_KEY: apiKey = "" } = cli.environment;
  const waits: number[] = [];
  const patient = new Sandgate({ baseUrl, apiKey, onRateLimited: (waitMs) => waits.push(waitMs) });
  const calls = await Promise.all([1, 2, 3].map(() => patient.sandbox(sandbox).execute("echo done")));
  assert.deepEqual(
    calls.map(({ stdout }) => stdout),
    ["done\n", "done\n", "done\n"],
  );
  assert.ok(waits.length > 0 && waits.every((waitMs) => waitMs >= 1_000));
  const impatient = new Sandgate({ baseUrl, apiKey, maxRetries: 0 });
  const settled = await Promise.allSettled([1, 2, 3].map(() => impatient.sandbox(sandbox).execute("true")));
  assert.ok(settled.some((one) => one.status === "rejected" && one.reason.name === "RateLimitError"));
  async function* once(): AsyncGenerator<Uint8Array> {
    yield randomBytes(10);
  }
  const uploads = await Promise.allSettled([1, 2, 3].map((index) => patient.sandbox(sandbox).upload(`/tmp/once-${index}`, once())));
  assert.ok(uploads.some((one) => one.status === "rejected" && one.reason.name === "RateLimitError"));
});
