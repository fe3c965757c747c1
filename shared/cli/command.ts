/** A command with the options that all have. */
import { Command } from "commander";

/** @param usage name and operands, as commander has them, such as `rm [SANDBOX...]` */
export function command(usage: string, about: string): Command {
  const [name, ...operands] = usage.split(" ");
  const made = new Command(name);
  for (const operand of operands) made.argument(operand.startsWith("[") ? operand : `<${operand}>`);
  return made
    .description(about)
    .option("--json", "print JSON for programs")
    .option("--url <url>", "the gateway (else SANDGATE_URL, else what login has stored)")
    .helpOption("-h, --help", "show this text");
}
