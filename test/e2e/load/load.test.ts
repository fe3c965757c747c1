/** `npm run load` against a real installation: it holds its rate, finds the limit, reports, compares, and leaves nothing. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { readResult } from "../../../bench/load/result.ts";
import type { Workload } from "../../../bench/load/workload.ts";
import { Accounts } from "../../helpers/accounts.ts";
import { TestBrowser } from "../../helpers/browser.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { testPort } from "../../helpers/ports.ts";
import { ReverseProxy } from "../../helpers/reverse-proxy.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const accounts = await fixture(Accounts.open(sharedStack()));
/** Of the loads that tests look behind while nothing else runs, and of the others, which run side by side. */
const [{ api }, busy] = [await accounts.make(), await accounts.make()];
const folder = mkdtempSync(join(tmpdir(), "sandgate-load-"));
atEnd(() => rmSync(folder, { recursive: true }));
/** Not of any load; one has a name like those of another run. */
const bystanders = [await api.create({ name: "bystander" }), await api.create({ name: "load-0badcafe-1" })].sort();

function mix(name: string, workload: Omit<Workload, "about">): string {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify({ about: name, ...workload }));
  return file;
}

const result = (name: string): string => join(folder, `${name}-result.json`);

/** Starts the bench as npm does. */
function load(args: readonly string[], { url, apiKey }: { url: string; apiKey: string } = busy.api) {
  const env = { PATH: process.env.PATH ?? "", HOME: folder, SANDGATE_URL: url, SANDGATE_API_KEY: apiKey };
  return execa(process.execPath, ["bench/run.mjs", "bench/load/main.ts", ...args], { env, extendEnv: false, reject: false, stdin: "ignore" });
}

async function listed(): Promise<string[]> {
  const { body } = await api.call<{ data: { id: string }[] }>("GET", "/v1/sandboxes/list?page_size=100");
  return body.data.map(({ id }) => id).sort();
}

const slow = mix("slow", { steps: [{ name: "slow", execute: "sleep 1" }] });
const made = mix("made", {
  phases: [
    { name: "in turn", count: 3 },
    { name: "at once", count: 3, everyMs: 0 },
  ],
  steps: [{ name: "first command", create: { run: "true" } }],
});
const limited = await accounts.make("limited", { tier: "enterprise", limits: { requests_per_minute: 60, burst: 60, sandboxes: 1 } });
const creates = mix("creates", { phases: [{ name: "at once", count: 4, everyMs: 0 }], steps: [{ name: "make", create: { run: "sleep 2" } }] });
const [reads, fails] = [mix("reads", { steps: [{ name: "list", read: "list" }] }), mix("fails", { steps: [{ name: "fails", execute: "exit 3" }] })];
const profiles = ["agents", "sessions", "streams"] as const;

/** Each takes seconds, most of them waiting: they run side by side. */
const runs = {
  open: load(["--mix", slow, "--rate", "8", "--duration", "3s", "--json", result("open")]),
  narrow: load(["--mix", slow, "--rate", "8", "--duration", "3s", "--in-flight", "2", "--json", result("narrow")]),
  made: load(["--mix", made, "--json", result("made"), "--html", join(folder, "made.html")]),
  limit: load(["--mix", reads, "--find-limit", "--rate", "40", "--duration", "100ms", "--p99", "1ms"]),
  refused: load(["--mix", creates, "--json", result("refused")], limited.api),
  nowhere: load(["--rate", "1"], { ...busy.api, url: `http://127.0.0.1:${await testPort()}` }),
  stranger: load(["--rate", "1"], { ...busy.api, apiKey: "sg_nobody" }),
  fails: load(["--mix", fails, "--rate", "4", "--duration", "500ms"]),
  profiles: Promise.all(profiles.map((profile) => load(["--mix", profile, "--rate", "10", "--duration", "2s", "--json", result(profile)]))),
};

test("answers that take long hold back no arrival: an open loop", async () => {
  const { exitCode, stdout, stderr } = await runs.open;
  assert.equal(exitCode, 0, stdout + stderr);
  const { sendings, rows, leftOver, isComplete } = readResult(result("open"));
  const [sending, row] = [sendings[0], rows[0]];
  // A client that waited for each answer would have sent three.
  assert.deepEqual([sending?.scheduled, sending?.sent, sending?.unsent, row?.count, row?.failures], [24, 24, 0, 24, 0]);
  assert.ok((sending?.inFlightMax ?? 0) > 1);
  assert.ok((row?.ms.p50 ?? 0) >= 1_000, "the command takes a second");
  assert.deepEqual([leftOver, isComplete], [[], true]);
  assert.match(stdout, /^slow: 8\/s for 3 s$/m);
  assert.match(stdout, /^24 of 24 arrivals sent/m);
});

test("what cannot be sent in time counts with its wait, and what cannot be sent at all is told", async () => {
  const { exitCode, stdout } = await runs.narrow;
  assert.equal(exitCode, 0, stdout);
  const { sendings, rows, generator } = readResult(result("narrow"));
  const sending = sendings[0];
  assert.ok(sending && sending.inFlightMax === 2 && sending.sent <= 8 && sending.sent + sending.unsent === 24, JSON.stringify(sending));
  assert.ok(sending.late > 0 && (rows[0]?.ms.max ?? 0) >= 2_000, "the last ones have waited for a second and more");
  assert.match(generator.limits.join(), /of 24 arrivals were not sent, because 2 were under way \(--in-flight\)/);
  assert.match(stdout, /The generator may have been the limit/);
});

test("two results are compared", async () => {
  await Promise.all([runs.open, runs.narrow]);
  const [one, other] = [result("open"), result("narrow")];
  const { exitCode, stdout } = await load(["compare", one, other]);
  assert.match(stdout, /^slow +p50 .* (slower by|too few to tell)/m);
  assert.match(stdout, /run \w+, the generator may have been the limit/);
  assert.equal(exitCode, /slower/.test(stdout) ? 5 : 0);
  const same = await load(["compare", one, one]);
  assert.doesNotMatch(same.stdout, /faster|slower/);
  assert.equal(same.exitCode, 0);
});

test("phases and marks: create to first command, and the report of it is one file", async () => {
  const page = join(folder, "made.html");
  const { exitCode, stdout } = await runs.made;
  assert.equal(exitCode, 0, stdout);
  for (const row of ["in turn: first command +3 +100 % +0", "at once: first command +3 +100 % +0", "  created +3 +100 % +0", "  deleted +3 +100 % +0"])
    assert.match(stdout, new RegExp(`^${row}`, "m"));
  await using browser = await TestBrowser.launch(api.url);
  const asked: string[] = [];
  const shown = await browser.open("about:blank");
  shown.on("request", (request) => asked.push(request.url()));
  await shown.goto(`file://${page}`);
  await shown.getByRole("heading", { name: "made: 3 in turn, 3 at once" }).waitFor();
  await shown.getByRole("img", { name: "Latency by percentile" }).waitFor();
  assert.deepEqual(asked, [`file://${page}`]);
  await browser.closePages();
  assert.ok(readFileSync(page, "utf8").length < 500_000);
});

test("every profile runs: all its steps succeed", async () => {
  for (const [index, { exitCode, stdout }] of (await runs.profiles).entries()) {
    assert.equal(exitCode, 0, stdout);
    const { rows, messages } = readResult(result(profiles[index] as string));
    assert.deepEqual(messages, {}, stdout);
    assert.equal(
      rows.filter(({ isMark }) => !isMark).reduce((sum, { count }) => sum + count, 0),
      20,
    );
  }
});

test("the search for the limit ends, and says what bends", async () => {
  const { exitCode, stdout, stderr } = await runs.limit;
  assert.equal(exitCode, 0, stdout + stderr);
  assert.match(stdout, /The deployment (holds|bends already at) [\d.]+\/s/);
  assert.match(stdout, /p99 is \d+ ms, above 1 ms/);
});

test("refusals by a limit are counted apart, and a load of which nothing succeeds says so", async () => {
  const { exitCode, stdout } = await runs.refused;
  assert.equal(exitCode, 0, stdout);
  const [row] = readResult(result("refused")).rows;
  assert.deepEqual([row?.count, row?.failures, row?.refused, row?.errors], [4, 3, 3, { sandbox_limit_reached: 3 }]);
  const failed = await runs.fails;
  assert.equal(failed.exitCode, 4);
  assert.match(failed.stdout, /2 failed with exit_3: a command ended with 3/);
});

test("a sandbox that is left over fails the run, and is told", async () => {
  using proxy = await ReverseProxy.start(api.url);
  proxy.refuses = ({ method }) => method === "DELETE";
  const { exitCode, stdout } = await load(["--mix", slow, "--rate", "2", "--duration", "500ms", "--clean-up", "1s"], { ...api, url: proxy.url });
  assert.equal(exitCode, 3, stdout);
  const left = (await listed()).filter((id) => !bystanders.includes(id));
  assert.equal(left.length, 1);
  assert.match(stdout, new RegExp(`Left over: ${left[0]} \\(refused by the test\\)`));
  await api.delete(left[0] as string);
});

test("Ctrl-C and errors remove what was made, and nothing else", async () => {
  const steps = [
    { name: "long", execute: "sleep 30" },
    { name: "new", create: { run: "sleep 30" } },
  ];
  const running = load(["--mix", mix("long", { sandboxes: 2, steps }), "--rate", "4"], api);
  try {
    await until("it has made some", async () => (await listed()).length >= bystanders.length + 4);
  } finally {
    running.kill("SIGINT");
  }
  const interrupted = await running;
  assert.equal(interrupted.exitCode, 130, interrupted.stdout + interrupted.stderr);
  assert.match(interrupted.stdout, /The load ended early/);
  assert.deepEqual(await listed(), bystanders);
  const broken = await load(["--mix", mix("broken", { sandboxes: 3, setup: "exit 7", steps: [{ name: "a", execute: "true" }] })], api);
  assert.equal(broken.exitCode, 1);
  assert.match(broken.stderr, /the set-up command of the workload ended with 7/);
  assert.deepEqual(await listed(), bystanders);
  const throws = join(folder, "throws.ts");
  writeFileSync(
    throws,
    'setTimeout(() => { throw new Error("an accident"); }, 2_000);\nexport default { about: "throws", steps: [{ name: "a", create: { run: "true" } }] };\n',
  );
  const thrown = await load(["--mix", throws, "--rate", "4"], api);
  assert.equal(thrown.exitCode, 1, thrown.stdout + thrown.stderr);
  assert.match(thrown.stdout, /The load ended early: an accident/);
  assert.deepEqual(await listed(), bystanders);
});

test("a deployment that cannot be used ends it at once", async () => {
  const [nowhere, stranger] = [await runs.nowhere, await runs.stranger];
  assert.deepEqual([nowhere.exitCode, stranger.exitCode], [1, 1]);
  assert.match(nowhere.stderr, /^no answer from http:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED/m);
  assert.match(stranger.stderr, /API key/);
  for (const { stdout } of [nowhere, stranger]) assert.doesNotMatch(stdout, /Removing|Left over/);
});
