/** The scenarios by name. */
import { concurrency } from "./concurrency.ts";
import { create } from "./create.ts";
import { execute } from "./execute.ts";
import { fairness } from "./fairness.ts";
import { hostile } from "./hostile.ts";
import { list } from "./list.ts";
import { session } from "./session.ts";
import type { Scenario } from "./setting.ts";
import { largeSnapshot, snapshot } from "./snapshot.ts";
import { stream } from "./stream.ts";

export const largeScenario = "snapshot-10GB";

/** In the order in which they run: `list` starts without sandboxes. */
export const scenarios = { execute, create, list, concurrency, stream, snapshot, session, fairness, hostile, [largeScenario]: largeSnapshot } satisfies Record<
  string,
  Scenario
>;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as readonly ScenarioName[];
