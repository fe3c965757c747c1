/** The command line of `npm run bench`. */
import { join } from "node:path";
import { UsageError } from "../shared/cli/failures.ts";
import { appDir } from "../shared/programs.mjs";
import { readArguments } from "./arguments.ts";
import { largeScenario, type ScenarioName, scenarioNames } from "./scenarios/index.ts";

export interface Options {
  readonly scenarios: readonly ScenarioName[];
  /** Number of measurements of the fastest operation; slower ones use a fixed share of it. */
  readonly runs: number;
  readonly jsonFile: string;
}

const runsDefault = 100;

export const usage = `npm run bench -- [SCENARIO...] [--runs N] [--json FILE]

Measures Sandgate beside what it is built on, in turns, and states whether the targets are met.

  SCENARIO     ${scenarioNames.join(", ")}; all but ${largeScenario}, which takes minutes, when none is named
  --runs N     measurements of execute (default ${runsDefault}); the slower scenarios take a share of it
  --json FILE  where the results go as JSON (default bench/results/latest.json)
`;

/** @returns the options, or undefined if only help was requested. @throws {UsageError} */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = readArguments(args, { runs: { type: "string" }, json: { type: "string" }, help: { type: "boolean", short: "h" } });
  if (values.help) return undefined;
  const runs = Number(values.runs ?? runsDefault);
  if (!Number.isInteger(runs) || runs < 1) throw new UsageError("--runs takes a whole number from 1");
  for (const name of positionals) {
    if (!(scenarioNames as readonly string[]).includes(name)) throw new UsageError(`no such scenario: ${name}; there are ${scenarioNames.join(", ")}`);
  }
  const scenarios = scenarioNames.filter((name) => (positionals.length === 0 ? name !== largeScenario : positionals.includes(name)));
  return { scenarios, runs, jsonFile: values.json ?? join(appDir, "bench/results/latest.json") };
}
