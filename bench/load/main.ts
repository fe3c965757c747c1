/** `npm run load`: loads a deployment, or compares two results. */
import { exitCodes, UsageError } from "../../shared/cli/failures.ts";
import { Terminal } from "../../systemd/base/terminal.ts";
import { exitInterrupted, Interrupted, interruption, tellFailure } from "../arguments.ts";
import { compareResults, differencesOf, isWorse, printComparison } from "./compare.ts";
import { htmlOf } from "./html.ts";
import { type LoadOptions, loadExitCodes, parseOptions, usage } from "./options.ts";
import { printResult } from "./print.ts";
import { type Result, readResult, writeOutput } from "./result.ts";
import { runLoad } from "./run.ts";
import { userPath } from "./workload.ts";

async function load(terminal: Terminal, options: LoadOptions): Promise<number> {
  const signal = interruption();
  const show = {
    task: <T>(title: string, object: string, work: (say: (text: string) => void) => Promise<T>) => terminal.task(title, object, ({ say }) => work(say)),
  };
  const result = await runLoad(options, show, signal);
  printResult(terminal, result);
  const outputs = [
    [options.jsonFile, () => `${JSON.stringify(result, undefined, 2)}\n`],
    [options.htmlFile, () => htmlOf(result)],
  ] as const;
  for (const [file, content] of outputs) {
    if (file === undefined) continue;
    writeOutput(file, content());
    terminal.line(`Written to ${file}`);
  }
  return exitCodeOf(result, signal);
}

function exitCodeOf({ leftOver, rows, isComplete }: Result, signal: AbortSignal): number {
  if (leftOver.length > 0) return loadExitCodes.leftOver;
  if (signal.reason instanceof Interrupted) return exitInterrupted;
  if (!isComplete) return exitCodes.failed;
  return rows.some(({ count, failures }) => count > failures) ? exitCodes.done : loadExitCodes.nothingSucceeded;
}

function compare(terminal: Terminal, base: readonly string[], other: readonly string[]): number {
  const [before, after] = [base, other].map((files) => files.map((file) => readResult(userPath(file), file))) as [Result[], Result[]];
  const verdicts = compareResults(before, after);
  if (verdicts.length === 0) throw new UsageError("the results have no row in common");
  printComparison(terminal, verdicts, differencesOf(before, after));
  return verdicts.some(isWorse) ? loadExitCodes.worse : exitCodes.done;
}

async function main(): Promise<number> {
  const terminal = new Terminal(process.stdout);
  try {
    const wanted = await parseOptions(process.argv.slice(2));
    if (wanted.kind === "load") return await load(terminal, wanted.options);
    if (wanted.kind === "compare") return compare(terminal, wanted.base, wanted.other);
    process.stdout.write(usage);
    return exitCodes.done;
  } catch (error) {
    return tellFailure(error, "load");
  }
}

process.exit(await main());
