/** The ways in which a command ends other than well. */
import { APIError } from "../client/errors.ts";

/** Of an `exec`: `own` is docker's for what failed before or beside the command. */
export const exitCodes = { done: 0, failed: 1, usage: 2, own: 125 } as const;

/** It could not be done; the message is for the person. */
export class CliError extends Error {
  override name = "CliError";
}

/** The command line is not one that there is. */
export class UsageError extends CliError {
  override name = "UsageError";
}

/** Some of what was asked for was not done, and has been told already. */
export class Told extends CliError {
  override name = "Told";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What the person is told of an error; a stack only where it is a defect. */
export function textOf(error: unknown): string {
  if (error instanceof UsageError) return `${error.message}\nsandgate COMMAND --help says what there is.`;
  if (error instanceof APIError && error.requestId) return `${error.message} (${error.requestId})`;
  // Of the client, of the file system, or ours.
  if (error instanceof CliError || (error instanceof Error && ("code" in error || error.name !== "TypeError"))) return messageOf(error);
  return String(error instanceof Error ? error.stack : error);
}
