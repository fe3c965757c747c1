/** The inputs and results of scenarios. */
import type { Installation } from "../installation.ts";
import type { Row } from "../rows.ts";

export interface Setting {
  readonly installation: Installation;
  /** Number of measurements of the fastest operation; a slower scenario uses a share of it. */
  readonly runs: number;
  /** Aborted on Ctrl-C. */
  readonly signal: AbortSignal;
  /** Shows what is being measured. */
  readonly say: (text: string) => void;
}

export type Scenario = (setting: Setting) => Promise<Row[]>;
