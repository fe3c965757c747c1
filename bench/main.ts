/** Prepares the machine, starts its own installation, measures, reports, and removes everything again. */

import { exitCodes } from "../shared/cli/failures.ts";
import { Terminal } from "../systemd/base/terminal.ts";
import { ensureBuilt } from "../systemd/build.mjs";
import { prepareBench } from "../test/helpers/prepare.ts";
import { seededRandom } from "../test/helpers/random.ts";
import { interruption, tellFailure } from "./arguments.ts";
import { thisComputer } from "./computer.ts";
import { Installation } from "./installation.ts";
import { describeMachine } from "./machine.ts";
import { type Options, parseOptions, usage } from "./options.ts";
import { writeReadme } from "./readme.ts";
import { printReport, writeReport } from "./report.ts";
import type { Row } from "./rows.ts";
import { scenarios, shareOf } from "./scenarios/index.ts";
import { judge } from "./targets.ts";

async function bench(options: Options, signal: AbortSignal): Promise<void> {
  const computer = thisComputer();
  const terminal = new Terminal(process.stdout);
  await ensureBuilt(process.execPath);
  await prepareBench(terminal);
  signal.throwIfAborted();
  const startedAt = new Date();
  const random = seededRandom(options.seed);
  const installation = await Installation.start();
  try {
    const machine = await describeMachine(installation, computer);
    await terminal.task("Warming up", "as after some use", () => installation.warm());
    const rows: Row[] = [];
    for (const [index, name] of options.scenarios.entries()) {
      const leftMs = options.wholeMsMax - (Date.now() - startedAt.getTime());
      const budgetMs = Math.min(options.budgetMs * shareOf(name, options.scenarios), leftMs * shareOf(name, options.scenarios.slice(index)));
      const measured = await terminal.task("Measuring", name, ({ say }) => scenarios[name]({ installation, budgetMs, random, signal, say }));
      rows.push(...measured);
    }
    const durationS = (Date.now() - startedAt.getTime()) / 1_000;
    const report = { startedAt: startedAt.toISOString(), durationS, seed: options.seed, machine, rows, targets: judge(rows) };
    printReport(terminal, report);
    writeReport(options.jsonFile, report);
    terminal.line(`Written to ${options.jsonFile}`);
    if (options.isForReadme) terminal.line(`Written to ${writeReadme(report)}`);
  } finally {
    await installation.stop();
  }
}

async function main(): Promise<number> {
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options) await bench(options, interruption());
    else process.stdout.write(usage);
    return exitCodes.done;
  } catch (error) {
    return tellFailure(error, "bench");
  }
}

process.exit(await main());
