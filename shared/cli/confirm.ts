/** Questions to the user. */
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { CliError, UsageError } from "./failures.ts";

const hasPerson = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/**
 * @param instead the option that gives consent on the command line
 * @throws {UsageError} if there is no terminal to ask on. @throws {CliError} if the user declines
 */
export async function confirm(question: string, instead: "--force" | "--yes"): Promise<void> {
  if (!hasPerson()) throw new UsageError(`${question} Without a terminal this needs ${instead}.`);
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer)) throw new CliError("nothing was changed");
}

/** Asks for one line. @throws {CliError} if there is none */
export function ask(question: string, { hidden = false } = {}): Promise<string> {
  let isMuted = false;
  // readline echoes the input, not the terminal.
  const echo = new Writable({
    write(chunk, _encoding, done) {
      if (!isMuted) process.stderr.write(chunk);
      done();
    },
  });
  const dialogue = createInterface({ input: process.stdin, output: echo, terminal: process.stdin.isTTY === true });
  return new Promise((resolve, reject) => {
    dialogue.once("SIGINT", () => dialogue.close());
    dialogue.once("close", () => reject(new CliError("nothing was changed")));
    dialogue.question(question, (answer) => {
      resolve(answer.trim());
      dialogue.close();
      if (hidden) process.stderr.write("\n");
    });
    isMuted = hidden;
  });
}
