/** Asking before something is done that cannot be taken back. */
import { createInterface } from "node:readline/promises";
import { AdminError, UsageError } from "./failures.ts";

/**
 * Resolves when the person agrees. @param yes agreed already, on the command line
 *
 * @throws {UsageError} when there is nobody to ask
 * @throws {AdminError} when the person does not agree
 */
export async function confirm(question: string, yes: boolean): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new UsageError(`${question} Without a terminal this needs --yes.`);
  const dialogue = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => dialogue.once("close", () => resolve("")));
  try {
    const answer = await Promise.race([dialogue.question(`${question} [y/N] `), closed]);
    if (!/^y(es)?$/i.test(answer.trim())) throw new AdminError("nothing was changed");
  } finally {
    dialogue.close();
  }
}
