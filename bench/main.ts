/** Prepares the machine, starts its own installation, measures, reports, and removes everything again. */

import { Terminal } from "../systemd/base/terminal.ts";
import { prepareTests } from "../test/helpers/prepare.ts";
import { Installation } from "./installation.ts";
import { describeMachine, loadAverage } from "./machine.ts";
import { type Options, parseOptions, UsageError, usage } from "./options.ts";
import { printReport, writeReport } from "./report.ts";
import type { Row } from "./rows.ts";
import { scenarios } from "./scenarios/index.ts";
import { judge } from "./targets.ts";

const exitUsage = 64;
const exitInterrupted = 130;

/** Ends the measurements but not the process, so that everything created is removed first. */
class Interrupted extends Error {
  override name = "Interrupted";
}

async function bench(options: Options, signal: AbortSignal): Promise<void> {
  const startedAt = new Date();
  const loadAtStart = loadAverage();
  const terminal = new Terminal(process.stdout);
  await prepareTests(terminal);
  signal.throwIfAborted();
  const installation = await Installation.start();
  try {
    const machine = await describeMachine(installation, loadAtStart);
    const rows: Row[] = [];
    for (const name of options.scenarios) {
      const measured = await terminal.task("Measuring", name, ({ say }) => scenarios[name]({ installation, runs: options.runs, signal, say }));
      rows.push(...measured);
    }
    const durationS = (Date.now() - startedAt.getTime()) / 1_000;
    const report = { startedAt: startedAt.toISOString(), durationS, runs: options.runs, machine, rows, targets: judge(rows) };
    printReport(terminal, report);
    writeReport(options.jsonFile, report);
    terminal.line(`Written to ${options.jsonFile}`);
  } finally {
    await installation.stop();
  }
}

async function main(): Promise<number> {
  try {
    const options = parseOptions(process.argv.slice(2));
    if (!options) {
      process.stdout.write(usage);
      return 0;
    }
    const interrupt = new AbortController();
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(name, () => interrupt.abort(new Interrupted("interrupted; removing what was made")));
    await bench(options, interrupt.signal);
    return 0;
  } catch (error) {
    process.stderr.write(`${error instanceof UsageError || error instanceof Interrupted ? error.message : (error as Error).stack}\n`);
    if (error instanceof UsageError) process.stderr.write(`\n${usage}`);
    return error instanceof UsageError ? exitUsage : error instanceof Interrupted ? exitInterrupted : 1;
  }
}

process.exit(await main());
