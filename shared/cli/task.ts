/** The context of a command, and how it ends. */

import { Command } from "commander";
import { Sandgate } from "../client/index.ts";
import { exitCodes, Told, textOf } from "./failures.ts";
import { Output, say } from "./output.ts";
import { findAccess } from "./settings.ts";

/** The options of every command. */
export interface CommonOptions {
  readonly json?: true;
  readonly url?: string;
}

export interface Task {
  readonly client: Sandgate;
  readonly out: Output;
}

/** @throws {CliError} if there is no API key */
export async function taskOf({ json, url }: CommonOptions): Promise<Task> {
  return { client: new Sandgate({ ...(await findAccess(url)), onRateLimited: tellWait }), out: new Output(json ?? false) };
}

/** Reports waits for the rate limit. Commands continue by themselves, as one may need more calls than a minute allows. */
export function tellWait(waitMs: number): void {
  say(`sandgate: request limit reached; continuing in ${Math.ceil(waitMs / 1_000)} s`);
}

/** Runs the work for each name; a failure does not stop the others. @throws {Told} if any has failed */
export async function forEach(names: readonly string[], work: (name: string) => Promise<void>): Promise<void> {
  let failures = 0;
  for (const name of names) {
    try {
      await work(name);
    } catch (error) {
      failures++;
      say(`sandgate: ${textOf(error)}`);
    }
  }
  if (failures > 0) throw new Told(`${failures} of ${names.length} failed`);
}

/** Ends the process after all output has been written. */
export function exit(code: number): never | Promise<never> {
  return new Promise(() => {
    process.exitCode = code;
    // In the next turn, so that an output error is reported first.
    process.stdout.write("", () => process.stderr.write("", () => setImmediate(() => process.exit(code))));
  });
}

export { exitCodes };

/** @param usage name and operands in commander's notation, such as `rm [SANDBOX...]` */
export function command(usage: string, about: string): Command {
  const [name, ...operands] = usage.split(" ");
  const made = new Command(name);
  for (const operand of operands) made.argument(operand.startsWith("[") ? operand : `<${operand}>`);
  return made
    .description(about)
    .option("--json", "print JSON for programs")
    .option("--url <url>", "the gateway (default: SANDGATE_URL, else the one stored by login)")
    .helpOption("-h, --help", "show this help");
}
