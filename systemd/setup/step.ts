/** One thing that the machine must have: looked at first, put right only when it is not so, then looked at again. */
import { StartFailure } from "../base/failure.ts";
import type { Progress, Terminal } from "../base/terminal.ts";

export interface Step {
  /** What is done when it has to be done, as in "Installing system packages". */
  readonly title: string;
  /** What is not as it should be, in words; nothing when all is well. Changes nothing and is quick. */
  lacks(): Promise<string | undefined>;
  /** Puts it right. Safe to run again after an interruption. */
  provide(progress: Progress): Promise<void>;
}

/** @throws {StartFailure} when the step has run and something is still missing. */
export async function ensure(step: Step, terminal: Terminal): Promise<void> {
  const missing = await step.lacks();
  if (missing === undefined) return;
  await terminal.task(step.title, missing, (progress) => step.provide(progress));
  const still = await step.lacks();
  if (still !== undefined) throw new StartFailure(`${step.title} did not help: ${still}`);
}
