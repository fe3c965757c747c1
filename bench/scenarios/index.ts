/** The scenarios by name. */
import { burst } from "./burst.ts";
import { concurrency } from "./concurrency.ts";
import { create } from "./create.ts";
import { execute } from "./execute.ts";
import { fairness } from "./fairness.ts";
import { files } from "./files.ts";
import { floodsAlone, hostile } from "./hostile.ts";
import { list } from "./list.ts";
import { memory } from "./memory.ts";
import { scale } from "./scale.ts";
import { session } from "./session.ts";
import type { Scenario } from "./setting.ts";
import { largeSnapshot, snapshot } from "./snapshot.ts";
import { stream } from "./stream.ts";
import { strongBesideStandard } from "./strong.ts";

/** Those that are only measured when they are named, because what they prepare takes minutes, or they explain another one. */
export const largeScenario = "snapshot-10GB";
export const memoryScenario = "memory";
export const floodsScenario = "floods";
export const scaleScenario = "scale";
export const burstScenario = "burst";
export const strongScenario = "strong";
export const longScenarios: readonly string[] = [largeScenario, memoryScenario, floodsScenario, scaleScenario, burstScenario, strongScenario];

/** In the order in which they run: `list` starts without sandboxes. */
export const scenarios = {
  ...{ execute, create, list, concurrency, stream, files, snapshot, session, fairness, hostile },
  [largeScenario]: largeSnapshot,
  [memoryScenario]: memory,
  [floodsScenario]: floodsAlone,
  [scaleScenario]: scale,
  [burstScenario]: burst,
  [strongScenario]: strongBesideStandard,
} satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as readonly ScenarioName[];

/** How long each may measure; slow ones and those with many rows need more for the same certainty. */
const seconds: Readonly<Record<ScenarioName, number>> = {
  ...{ execute: 25, create: 40, list: 35, concurrency: 30, stream: 40, files: 25, snapshot: 50, session: 35, fairness: 10, hostile: 25 },
  [largeScenario]: 180,
  [memoryScenario]: 120,
  [floodsScenario]: 60,
  [scaleScenario]: 40,
  [burstScenario]: 60,
  [strongScenario]: 60,
};

export const allSecondsOf = (names: readonly ScenarioName[]): number => names.reduce((sum, name) => sum + seconds[name], 0);

/** What a scenario has of the time for several. */
export const shareOf = (name: ScenarioName, names: readonly ScenarioName[]): number => seconds[name] / allSecondsOf(names);
