/** The scenarios by name. */
import type { Installation } from "../installation.ts";
import type { Row } from "../rows.ts";
import { concurrency } from "./concurrency.ts";
import { create } from "./create.ts";
import { execute } from "./execute.ts";
import { fairness } from "./fairness.ts";
import { list } from "./list.ts";
import { session } from "./session.ts";
import { snapshot } from "./snapshot.ts";
import { stream } from "./stream.ts";

export interface Setting {
  readonly installation: Installation;
  /** Measurements of the quickest operation; a slower scenario takes its share. */
  readonly runs: number;
  /** Aborted on Ctrl-C. */
  readonly signal: AbortSignal;
  /** Shows what is being measured. */
  readonly say: (text: string) => void;
}

export type Scenario = (setting: Setting) => Promise<Row[]>;

/** In the order in which they run: `list` begins without sandboxes. */
export const scenarios = { execute, create, list, concurrency, stream, snapshot, session, fairness } satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as readonly ScenarioName[];
