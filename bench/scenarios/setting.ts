/** What a scenario is given, and what it brings. */
import type { Installation } from "../installation.ts";
import type { Row } from "../rows.ts";

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
