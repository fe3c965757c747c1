/** What the command lines of this folder share. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { exitCodes, messageOf, textOf, UsageError } from "../shared/cli/failures.ts";
import { say } from "../shared/cli/output.ts";

/** @throws {UsageError} on an option that does not exist, or lacks its value */
export function readArguments<O extends NonNullable<ParseArgsConfig["options"]>>(args: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** Ends the measurements but not the process, so that everything created is removed first. */
export class Interrupted extends Error {
  override name = "Interrupted";
}

export const exitInterrupted = 130;

/** Aborted by Ctrl-C and what else asks a process to end, and by an error that nothing has caught, which becomes the reason. */
export function interruption(): AbortSignal {
  const interrupt = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interrupt.abort(new Interrupted("interrupted; removing what was made")));
  for (const name of ["uncaughtException", "unhandledRejection"] as const) process.on(name, (error: unknown) => interrupt.abort(error));
  return interrupt.signal;
}

/** Tells an error, and where the options are listed if the command line was wrong. @returns the exit code */
export function tellFailure(error: unknown, command: string): number {
  const isUsage = error instanceof UsageError;
  say(isUsage ? `${error.message}\nnpm run ${command} -- --help lists the options` : textOf(error));
  if (isUsage) return exitCodes.usage;
  return error instanceof Interrupted ? exitInterrupted : exitCodes.failed;
}
