/** One requirement of the set-up: checked first, put right only if needed, then checked again. */
import { StartFailure } from "../base/failure.ts";
import type { Progress, Terminal } from "../base/terminal.ts";

export interface Step {
  /** What putting it right does, as in "Installing system packages". */
  readonly title: string;
  /** Describes what is missing or wrong; undefined if all is well. Quick, and changes nothing. */
  lacks(): Promise<string | undefined>;
  /** Puts it right. Safe to run again after an interruption. */
  provide(progress: Progress): Promise<void>;
}

/** @throws {StartFailure} if something is still missing after the step has run. */
export async function ensure(step: Step, terminal: Terminal): Promise<void> {
  const missing = await step.lacks();
  if (missing === undefined) return;
  await terminal.task(step.title, missing, (progress) => step.provide(progress));
  const still = await step.lacks();
  if (still !== undefined) throw new StartFailure(`${step.title} has not fixed this: ${still}`);
}
