/** `npx sandgate`: sandboxes from the command line. */
import { CommanderError } from "commander";
import { APIError } from "../client/errors.ts";
import { CliError, exitCodes, messageOf, Told, UsageError } from "./failures.ts";
import { say } from "./output.ts";
import { program } from "./program.ts";
import { exit } from "./task.ts";

/** The exit code of what went wrong, which is told here. */
function tell(error: unknown, isExec: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : isExec ? exitCodes.own : exitCodes.usage;
  if (!(error instanceof Told)) say(`sandgate: ${textOf(error)}`);
  if (isExec) return exitCodes.own;
  return error instanceof UsageError ? exitCodes.usage : exitCodes.failed;
}

function textOf(error: unknown): string {
  if (error instanceof UsageError) return `${error.message}\nsandgate COMMAND --help says what there is.`;
  if (error instanceof APIError && error.requestId) return `${error.message} (${error.requestId})`;
  // Of the client, of the file system, or ours.
  if (error instanceof CliError || (error instanceof Error && ("code" in error || error.name !== "TypeError"))) return messageOf(error);
  return String(error instanceof Error ? error.stack : error);
}

const args = process.argv.slice(2);
const isExec = args[0] === "exec" || args[0] === "attach";
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // Such as `| head`: nobody reads on. What else happens here is a loss, as on a full disk.
  process.exit(error.code === "EPIPE" ? exitCodes.done : tell(error, isExec));
});
try {
  await program().parseAsync(args, { from: "user" });
} catch (error) {
  await exit(tell(error, isExec));
}
await exit(exitCodes.done);
