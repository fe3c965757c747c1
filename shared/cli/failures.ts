/** The failures of commands. */
import { APIError } from "../client/errors.ts";

/** Exit codes. `own` is docker's code for failures of `exec` that are not the command's. */
export const exitCodes = { done: 0, failed: 1, usage: 2, own: 125 } as const;

/** A failure with a message for the user. */
export class CliError extends Error {
  override name = "CliError";
}

/** An invalid command line. */
export class UsageError extends CliError {
  override name = "UsageError";
}

/** Part of the work failed, and this has already been reported. */
export class Told extends CliError {
  override name = "Told";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The text that the user sees for an error; with a stack only for defects. */
export function textOf(error: unknown): string {
  if (error instanceof UsageError) return `${error.message}\nSee sandgate COMMAND --help.`;
  if (error instanceof APIError && error.requestId) return `${error.message} (${error.requestId})`;
  // Errors of the client, of the file system, and our own.
  if (error instanceof CliError || (error instanceof Error && ("code" in error || error.name !== "TypeError"))) return messageOf(error);
  return String(error instanceof Error ? error.stack : error);
}
