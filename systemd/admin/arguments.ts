/** The command line of `sandgate-admin`. */
import { parseArgs } from "node:util";
import { messageOf } from "../failure.ts";
import { type Command, type OptionName, options, type Values } from "./command.ts";
import { commands } from "./commands/all.ts";
import { UsageError } from "./failures.ts";

const common: readonly OptionName[] = ["url", "key-file", "json", "yes", "help"];

export interface Request {
  readonly command: Command;
  readonly operands: readonly string[];
  readonly values: Values;
}

/** What is asked for; `help` for its text. @throws {UsageError} when that is nothing that there is. */
export function parseRequest(args: readonly string[]): Request | "help" {
  const { values, positionals } = parsed(args);
  const [name, ...operands] = positionals;
  if (values.help || name === "help") return "help";
  if (name === undefined) throw new UsageError("which command?");
  const command = commands.find((known) => known.name === name);
  if (!command) throw new UsageError(`there is no command ${name}`);
  for (const option of Object.keys(values) as OptionName[]) {
    if (!common.includes(option) && !command.options.includes(option)) throw new UsageError(`${name} has no option --${option}`);
  }
  if (operands.length < command.min) throw new UsageError(`${name} needs ${command.takes}`);
  if (operands.length > command.max) throw new UsageError(`${name} does not take ${JSON.stringify(operands[command.max])}`);
  return { command, operands, values };
}

function parsed(args: readonly string[]): { values: Values; positionals: string[] } {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, allowNegative: true });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}
