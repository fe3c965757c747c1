/** `npx sandgate`: sandboxes from the command line. */
import { CommanderError } from "commander";
import { ConfigError } from "../config.ts";
import { exitCodes, Told, textOf, UsageError } from "./failures.ts";
import { say } from "./output.ts";
import { program } from "./program.ts";
import { exit } from "./task.ts";

/** Reports an error. Returns its exit code. */
function tell(error: unknown, isExec: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : isExec ? exitCodes.own : exitCodes.usage;
  if (!(error instanceof Told)) say(`sandgate: ${textOf(error)}`);
  if (isExec) return exitCodes.own;
  return error instanceof UsageError || error instanceof ConfigError ? exitCodes.usage : exitCodes.failed;
}

const args = process.argv.slice(2);
const isExec = args[0] === "exec" || args[0] === "attach";
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // EPIPE: the reader has gone, as with `| head`. Any other error loses output, for example on a full disk.
  process.exit(error.code === "EPIPE" ? exitCodes.done : tell(error, isExec));
});
try {
  await program().parseAsync(args, { from: "user" });
} catch (error) {
  await exit(tell(error, isExec));
}
await exit(exitCodes.done);
