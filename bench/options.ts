/** The command line of `npm run bench`. */
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { UsageError } from "../shared/cli/failures.ts";
import { spanMs, whole } from "../shared/cli/values.ts";
import { appDir } from "../shared/programs.mjs";
import { readArguments } from "./arguments.ts";
import { allSecondsOf, longScenarios, type ScenarioName, scenarioNames } from "./scenarios/index.ts";

export interface Options {
  readonly scenarios: readonly ScenarioName[];
  /** For all that the scenarios measure. */
  readonly budgetMs: number;
  /** For the whole run, without setting up the machine; scenarios measure less when they would take longer. */
  readonly wholeMsMax: number;
  /** Of the order in which contenders take their turns. */
  readonly seed: number;
  readonly jsonFile: string;
  /** Whether the figures replace those in the README. */
  readonly isForReadme: boolean;
}

/** What all scenarios of a run without options take at most, with their preparation. */
const wholeSecondsMax = 350;
const seedMax = 1_000_000;

const usual = scenarioNames.filter((name) => !longScenarios.includes(name));

export const usage = `npm run bench -- [SCENARIO...] [--time SPAN] [--seed N] [--json FILE] [--readme]

Measures Sandgate beside what it is built on, in turns, until it is known how many times as fast it is or the time is over, and
states whether the targets are met.

  SCENARIO     ${scenarioNames.join(", ")}; all but ${longScenarios.join(", ")}
               when none is named
  --time SPAN  for all measurements (default: ${Math.round(allSecondsOf(usual) / 60)}m for all, or what each named one has of that)
  --seed N     the same order of turns as in the run that told this number
  --json FILE  where the results go as JSON (default bench/results/latest.json)
  --readme     write them into the section Performance of README.md as well
`;

/** @returns the options, or undefined if only help was requested. @throws {UsageError} */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = readArguments(args, {
    time: { type: "string" },
    seed: { type: "string" },
    json: { type: "string" },
    readme: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  });
  if (values.help) return undefined;
  for (const name of positionals) {
    if (!(scenarioNames as readonly string[]).includes(name)) throw new UsageError(`no such scenario: ${name}; there are ${scenarioNames.join(", ")}`);
  }
  const scenarios = positionals.length === 0 ? usual : scenarioNames.filter((name) => positionals.includes(name));
  const budgetMs = values.time === undefined ? allSecondsOf(scenarios) * 1_000 : spanMs("--time")(values.time);
  const isBounded = values.time === undefined && !scenarios.some((name) => longScenarios.includes(name));
  return {
    scenarios,
    budgetMs,
    wholeMsMax: isBounded ? wholeSecondsMax * 1_000 : Number.POSITIVE_INFINITY,
    seed: values.seed === undefined ? randomInt(seedMax) : whole("--seed", 0)(values.seed),
    jsonFile: values.json ?? join(appDir, "bench/results/latest.json"),
    isForReadme: values.readme ?? false,
  };
}
