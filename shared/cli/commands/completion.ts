/** `completion`, and what the shells ask for while one types. */
import type { Command } from "commander";
import { Sandgate } from "../../client/index.ts";
import { command } from "../command.ts";
import { scripts } from "../completion-scripts.ts";
import { UsageError } from "../failures.ts";
import { findAccess } from "../settings.ts";

/** A shell waits for it while the person does. */
const patienceMs = 2_000;

const takesSandbox: ReadonlySet<string> = new Set(["rm", "exec", "attach", "sessions", "cp", "stats", "logs", "snapshot", "clone"]);
const takesSnapshot: ReadonlySet<string> = new Set(["restore", "snapshots"]);

/** What can stand in the place of the last word. */
export async function candidates(all: Command, words: readonly string[]): Promise<string[]> {
  const last = words.at(-1) ?? "";
  const name = words[0] ?? "";
  if (words.length <= 1)
    return matching(
      last,
      visible(all).flatMap((one) => [one.name()]),
    );
  const found = all.commands.find((one) => one.name() === name || one.aliases().includes(name));
  if (!found) return [];
  const below = found.commands.find((one) => one.name() === words[1] && words.length > 2);
  if (last.startsWith("-"))
    return matching(
      last,
      (below ?? found).options.flatMap(({ short, long }) => [short, long]).filter((flag) => flag !== undefined),
    );
  const operands = words.slice(1, -1).filter((word) => !word.startsWith("-")).length;
  if (name === "completion") return matching(last, Object.keys(scripts));
  if (name === "help")
    return matching(
      last,
      visible(all).map((one) => one.name()),
    );
  // What comes after is the command in the sandbox.
  if (name === "exec" && operands > 0) return [];
  const subcommands = operands === 0 ? found.commands.map((one) => one.name()) : [];
  return matching(last, [...subcommands, ...(await things(name, found.name(), operands))]);
}

async function things(name: string, full: string, operands: number): Promise<string[]> {
  if (name === "attach" && operands > 0) return [];
  const isSandbox = takesSandbox.has(full);
  if (!isSandbox && !takesSnapshot.has(full)) return [];
  const client = new Sandgate({ ...(await findAccess(undefined)), maxRetries: 0, timeoutMs: patienceMs });
  const items = await (isSandbox ? client.sandboxes.list() : client.snapshots.list()).all();
  const names = items.flatMap((item) => [item.name, item.id]);
  return full === "cp" ? names.map((one) => `${one}:`) : names;
}

const visible = (all: Command): Command[] => all.commands.filter((one) => !one.name().startsWith("__"));

/** Ids come when one begins to type one. */
function matching(begun: string, words: readonly string[]): string[] {
  const isId = (word: string): boolean => /^(sb|snap)_[0-9a-z]{26}:?$/.test(word);
  return [...new Set(words)].filter((word) => word.startsWith(begun) && (begun !== "" || !isId(word))).sort();
}

function printScript(shell: string): void {
  const script = scripts[shell as keyof typeof scripts];
  if (!script) throw new UsageError(`completion knows ${Object.keys(scripts).join(", ")}`);
  process.stdout.write(script);
}

const help = `
For this shell:            source <(sandgate completion bash)
For every bash to come:    sandgate completion bash > ~/.local/share/bash-completion/completions/sandgate
For zsh:                   sandgate completion zsh > "\${fpath[1]}/_sandgate"
For fish:                  sandgate completion fish > ~/.config/fish/completions/sandgate.fish`;

export function completionCommands(all: Command): Command[] {
  return [
    command("completion SHELL", "print the completion for bash, zsh or fish").addHelpText("after", help).action(printScript),
    command("__complete [WORDS...]", "what the shells ask for")
      .allowUnknownOption()
      .passThroughOptions()
      .action(async (words: string[]) => {
        // Nothing to say is better than a message in the middle of what the person types.
        const found = await candidates(all, words[0] === "--" ? words.slice(1) : words).catch(() => []);
        if (found.length > 0) process.stdout.write(`${found.join("\n")}\n`);
      }),
  ];
}
