/** A command with the options that all commands share. */
import { Command } from "commander";

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
