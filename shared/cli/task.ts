/** What a command works with, and how it ends. */
import { Sandgate } from "../client/index.ts";
import { exitCodes, Told, textOf } from "./failures.ts";
import { Output, say } from "./output.ts";
import { findAccess } from "./settings.ts";

/** The options that every command takes. */
export interface CommonOptions {
  readonly json?: true;
  readonly url?: string;
}

export interface Task {
  readonly client: Sandgate;
  readonly out: Output;
}

/** @throws {CliError} when there is no key */
export async function taskOf({ json, url }: CommonOptions): Promise<Task> {
  return { client: new Sandgate({ ...(await findAccess(url)), onRateLimited: tellWait }), out: new Output(json ?? false) };
}

/** Commands go on by themselves: what one does may take more calls than a minute allows. */
export function tellWait(waitMs: number): void {
  say(`sandgate: the limit of requests is reached; going on in ${Math.ceil(waitMs / 1_000)} s`);
}

/** Does it for each; one that fails holds up no other. @throws {Told} when any has */
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

/** Ends the process when all that was printed is out. */
export function exit(code: number): never | Promise<never> {
  return new Promise(() => {
    process.exitCode = code;
    // In the next turn, so that an output that failed is told first.
    process.stdout.write("", () => process.stderr.write("", () => setImmediate(() => process.exit(code))));
  });
}

export { exitCodes };
