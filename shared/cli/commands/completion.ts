/** The `completion` command, and the requests of shells while the user types. */
import type { Command } from "commander";
import { Sandgate } from "../../client/index.ts";
import { scripts } from "../completion-scripts.ts";
import { UsageError } from "../failures.ts";
import { findAccess } from "../settings.ts";
import { command } from "../task.ts";

/** Timeout of completion requests: the user is waiting in the shell. */
const patienceMs = 2_000;

const takesSandbox: ReadonlySet<string> = new Set(["rm", "exec", "attach", "sessions", "cp", "stats", "logs", "snapshot", "clone", "fork"]);
const takesSnapshot: ReadonlySet<string> = new Set(["restore", "snapshots"]);

/** The candidates for the last word. */
export async function candidates(all: Command, words: readonly string[]): Promise<string[]> {
  const last = words.at(-1) ?? "";
  const { path, operands } = reached(all, words.slice(0, -1));
  const [top] = path;
  const at = path.at(-1) ?? all;
  if (!top) return operands > 0 ? [] : matching(last, names(all));
  if (last.startsWith("-"))
    return matching(last, path.flatMap(({ options }) => options.flatMap(({ short, long }) => [short ?? "", long ?? ""])).filter(Boolean));
  if (top.name() === "completion") return matching(last, Object.keys(scripts));
  // The rest is the command to run in the sandbox.
  if (top.name() === "exec" && operands > 0) return [];
  return matching(last, [...(operands === 0 ? names(at) : []), ...(await things(top.name(), operands))]);
}

/** The commands that the words lead to, and the number of operands after the last command. */
function reached(all: Command, words: readonly string[]): { path: Command[]; operands: number } {
  const path: Command[] = [];
  let operands = 0;
  let isValue = false;
  for (const word of words) {
    const at = path.at(-1) ?? all;
    const below = operands === 0 ? at.commands.find((one) => one.name() === word || one.aliases().includes(word)) : undefined;
    const isOption = word.startsWith("-");
    if (!isValue && below) path.push(below);
    else if (!isValue && !isOption) operands++;
    isValue = isOption && path.some(({ options }) => options.some((option) => option.required && (option.short === word || option.long === word)));
  }
  // Words after `help` name a command, whose help takes no operands.
  return words[0] === "help" ? { path: [], operands: 0 } : { path, operands };
}

async function things(name: string, operands: number): Promise<string[]> {
  if (name === "attach" && operands > 0) return [];
  const isSandbox = takesSandbox.has(name);
  if (!isSandbox && !takesSnapshot.has(name)) return [];
  const client = new Sandgate({ ...(await findAccess(undefined)), maxRetries: 0, timeoutMs: patienceMs });
  const items = await (isSandbox ? client.sandboxes.list() : client.snapshots.list()).all();
  const names = items.flatMap((item) => [item.name, item.id]);
  return name === "cp" ? names.map((one) => `${one}:`) : names;
}

const names = (at: Command): string[] => at.commands.map((one) => one.name()).filter((name) => !name.startsWith("__"));

/** The words that start with `begun`. Ids are offered only after the user has started to type one. */
function matching(begun: string, words: readonly string[]): string[] {
  const isId = (word: string): boolean => /^(sb|snap)_[0-9a-z]{26}:?$/.test(word);
  return [...new Set(words)].filter((word) => word.startsWith(begun) && (begun !== "" || !isId(word))).sort();
}

function printScript(shell: string): void {
  const script = scripts[shell as keyof typeof scripts];
  if (!script) throw new UsageError(`completion supports ${Object.keys(scripts).join(", ")}`);
  process.stdout.write(script);
}

const help = `
For this shell:            source <(sandgate completion bash)
For all future shells:     sandgate completion bash > ~/.local/share/bash-completion/completions/sandgate
For zsh:                   sandgate completion zsh > "\${fpath[1]}/_sandgate"
For fish:                  sandgate completion fish > ~/.config/fish/completions/sandgate.fish`;

export function completionCommands(all: Command): Command[] {
  return [
    command("completion SHELL", "print the completion for bash, zsh or fish").addHelpText("after", help).action(printScript),
    command("__complete [WORDS...]", "used by the shell scripts")
      .allowUnknownOption()
      .passThroughOptions()
      .action(async (words: string[]) => {
        // Better no candidates than an error message in the middle of the user's input.
        const found = await candidates(all, words[0] === "--" ? words.slice(1) : words).catch(() => []);
        if (found.length > 0) process.stdout.write(`${found.join("\n")}\n`);
      }),
  ];
}
