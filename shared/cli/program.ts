/** All commands. */
import { Command } from "commander";
import { addAdmin } from "./admin/group.ts";
import { completionCommands } from "./commands/completion.ts";
import { copyCommands } from "./commands/cp.ts";
import { execCommands } from "./commands/exec.ts";
import { loginCommands } from "./commands/login.ts";
import { sandboxCommands } from "./commands/sandboxes.ts";
import { snapshotCommands } from "./commands/snapshots.ts";
import { usageCommands } from "./commands/usage.ts";
import { version } from "./version.ts";

const intro = "Sandboxes from the command line: isolated Linux environments on a Sandgate server.";

const help = `
A SANDBOX is its id, its name, or the beginning of its id. Every command has --help and --json.

First steps:
  sandgate login                         the server's address and an API key from its web page
  sandgate create --name web             make a sandbox
  sandgate exec web -- python3 -V        run something in it
  sandgate exec -it web                  open a shell in it
  sandgate cp ./app web:/work/app        copy files and folders, both ways
  sandgate rm web                        delete it

Operators of a server manage it with sandgate admin.

Environment: SANDGATE_URL and SANDGATE_API_KEY come before what login has stored.
Exit codes: 0 done, 1 failed, 2 wrong usage; those of exec and attach are the command's, or 125.`;

export function program(): Command {
  const all = new Command("sandgate")
    .description(intro)
    .usage("COMMAND [OPTIONS] [ARGUMENTS]")
    .version(version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show this text")
    .helpCommand("help [COMMAND]", "show the help of a command")
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError("sandgate COMMAND --help says what there is.")
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "sandgate: ")) })
    .addHelpText("after", help)
    .exitOverride();
  for (const one of [
    ...loginCommands(),
    ...sandboxCommands(),
    ...execCommands(),
    ...copyCommands(),
    ...usageCommands(),
    ...snapshotCommands(),
    ...completionCommands(all),
  ]) {
    all.addCommand(inherited(one, all), { hidden: one.name().startsWith("__") });
  }
  addAdmin(all);
  return all;
}

/** addCommand, unlike command, hands no settings down. */
function inherited(one: Command, parent: Command): Command {
  one.copyInheritedSettings(parent);
  for (const below of one.commands) inherited(below, one);
  return one;
}
