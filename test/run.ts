/**
 * Prepares the machine, starts one installation that most end-to-end tests share, runs the test files, cleans up.
 * The run ends with a table of the attacks that were tried and held.
 */
import { join, relative } from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { loadConfig } from "../shared/config.ts";
import { Terminal } from "../systemd/base/terminal.ts";
import { releaseMachine } from "../systemd/supervisor/release.ts";
import { Attacks } from "./helpers/attacks.ts";
import { noteDurations, notedDurations, spread } from "./helpers/order.ts";
import { prepareTests } from "./helpers/prepare.ts";
import { sharedStackEnvironment } from "./helpers/shared.ts";
import { type Stack, startStack } from "./helpers/stack.ts";
import { toolchainsImage } from "./helpers/toolchains.ts";
import { whyNotBootable } from "./host/bootable.ts";
import { baseSystem } from "./host/machine.ts";

/** Files that start their own installations take long; a few run in parallel. More of them take as long on two cores. */
const filesAtOnce = 4;
/** Beside the others: most of them wait for something most of the time. */
const unitFilesAtOnce = 2;
/** Only ends a hang: a busy machine takes four times as long as a quiet one. */
const testTimeoutMs = 1_800_000;
/** Causing faults takes as long as there are rounds. */
const faultsTimeoutMs = 7_200_000;
/** An emulated machine takes minutes to boot, and one more for much that takes seconds elsewhere. */
const machineTimeoutMs = 5_400_000;
const slowestShown = 15;
/** The tests of all walls and limits meet sandboxes as an installation hands them out by default: most of them were containers of the pool. */
const asByDefault = { SANDGATE_POOL_SIZE: "4", SANDGATE_POOL_SIZE_MAX: "8" };
const durations = new Map<string, number>();
const attacks = new Attacks();
const interrupted = new AbortController();

/** How test files are run. */
interface Options {
  /** Whether to write down how long they take, for the order of later runs. */
  readonly areNoted: boolean;
  /** Whether they were named, so that none may be left out because this machine cannot run it. */
  readonly areNamed: boolean;
}

/** Runs test files, given by their paths in the project, from the folder of their bundles. Ends the process. */
export async function runTests(bundles: string, wanted: readonly string[], { areNoted, areNamed }: Options): Promise<never> {
  const terminal = new Terminal(process.stdout);
  try {
    await prepareTests(terminal);
    await runPrepared(bundles, wanted, { areNoted, areNamed }, terminal);
  } finally {
    await releaseMachine({ ...loadConfig(), volume: "none" }, terminal);
  }
  process.exit();
}

async function runPrepared(bundles: string, wanted: readonly string[], { areNoted, areNamed }: Options, terminal: Terminal): Promise<void> {
  const hindrance = wanted.some(isOfMachine) ? await whyNotBootable() : undefined;
  if (hindrance && areNamed) throw new Error(`no machines can be booted here: ${hindrance}`);
  const files = wanted.filter((file) => !hindrance || !isOfMachine(file));
  const stack = files.some((file) => file.includes("e2e")) ? await startStack({ name: "shared", settings: asByDefault }) : undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
  try {
    if (stack) Object.assign(process.env, sharedStackEnvironment(stack));
    const failed = await runAll(bundles, files, stack);
    tellSlowest();
    if (hindrance) terminal.warn(`No machines were booted: ${hindrance}. Left out: ${wanted.filter(isOfMachine).join(", ")}`);
    if (areNoted) noteDurations(durations);
    const table = attacks.table();
    if (table) console.log(`\n${table}`);
    process.exitCode = failed || interrupted.signal.aborted ? 1 : 0;
  } finally {
    await stack?.[Symbol.asyncDispose]();
  }
}

/** Unit tests go on beside all others, and are reported on after them. @returns whether a test failed */
async function runAll(bundles: string, files: readonly string[], stack: Stack | undefined): Promise<boolean> {
  const isUnit = (file: string): boolean => file.startsWith("test/unit/");
  const [greedy, unit, others] = [files.filter(isGreedy), files.filter(isUnit), files.filter((file) => !isGreedy(file) && !isUnit(file))];
  const noted = notedDurations();
  const unitReport = new PassThrough();
  const unitTests = runFiles(bundles, spread(unit, noted), unitFilesAtOnce, unitReport);
  // Built once for this machine, which takes minutes, and uses little more than one CPU.
  const image = stack && files.some((file) => file.includes("/toolchains")) ? toolchainsImage(stack.instance) : undefined;
  const machines = files.some(isOfMachine) ? baseSystem("trixie") : undefined;
  const [greedyFailed] = await Promise.all([runFiles(bundles, greedy, 1, process.stdout), image, machines]);
  const failed = [greedyFailed, await runFiles(bundles, spread(others, noted), filesAtOnce, process.stdout)];
  unitReport.pipe(process.stdout, { end: false });
  failed.push(await unitTests);
  await finished(unitReport.end());
  return failed.includes(true);
}

/** Reports which tests take the most time. */
function tellSlowest(): void {
  const slowest = [...durations].sort(([, one], [, other]) => other - one).slice(0, slowestShown);
  console.log(`slowest files: ${slowest.map(([file, seconds]) => `${file} ${seconds.toFixed(0)} s`).join(", ")}`);
}

/** Fork bombs and the like: without a pids controller in the kernel, they slow down the installation that others share. Unit tests do not need it. */
function isGreedy(file: string): boolean {
  return causesFaults(file) || file.includes("/limits/resources") || file.includes("/walls/cpu");
}

const isOfMachine = (file: string): boolean => file.startsWith("test/host/");

const causesFaults = (file: string): boolean => file.startsWith("test/faults/");

function timeoutMsOf(paths: readonly string[]): number {
  if (paths.some(causesFaults)) return faultsTimeoutMs;
  return paths.some((path) => path.startsWith("test/vm/")) ? machineTimeoutMs : testTimeoutMs;
}

/** Runs test files and reports on them. @returns whether a test failed */
async function runFiles(bundles: string, paths: readonly string[], concurrency: number, told: Writable): Promise<boolean> {
  if (paths.length === 0) return false;
  let failed = false;
  const tests = run({
    files: paths.map((path) => join(bundles, path.replace(/\.ts$/, ".js"))),
    concurrency,
    timeout: timeoutMsOf(paths),
    signal: interrupted.signal,
  });
  tests.on("test:fail", (test) => {
    failed = true;
    attacks.note(test, false);
  });
  tests.on("test:pass", (test) => attacks.note(test, true));
  tests.on("test:summary", ({ file, duration_ms }) => {
    if (file) durations.set(relative(bundles, file).replace(/\.js$/, ".ts"), duration_ms / 1000);
  });
  // The reporter writes its summary last, after the last test has ended.
  const report = tests.compose(new spec());
  report.pipe(told, { end: false });
  return new Promise((resolve) => report.once("end", () => resolve(failed)));
}
