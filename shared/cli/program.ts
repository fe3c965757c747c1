/** All commands. */
import { Command } from "commander";
import { addAccountCommands } from "./admin/accounts.ts";
import { addAuditCommand } from "./admin/audit.ts";
import { addBackupCommands } from "./admin/backup.ts";
import { addClusterCommands } from "./admin/cluster.ts";
import { addImageCommands } from "./admin/images.ts";
import { addKeyCommands } from "./admin/keys.ts";
import { addMemberCommands } from "./admin/members.ts";
import { addSandboxCommands } from "./admin/sandboxes.ts";
import { addWorkerCommands } from "./admin/workers.ts";
import { completionCommands } from "./commands/completion.ts";
import { copyCommands } from "./commands/cp.ts";
import { execCommands } from "./commands/exec.ts";
import { loginCommands } from "./commands/login.ts";
import { sandboxCommands } from "./commands/sandboxes.ts";
import { snapshotCommands } from "./commands/snapshots.ts";
import { usageCommands } from "./commands/usage.ts";

const adminHelp = `
ACCOUNT is an id such as acct_01k9… or an e-mail address. Every command has --help.

Examples:
  sandgate admin set ann@example.com --tier pro
  sandgate admin set ann@example.com --requests 500 --sandboxes 20
  sandgate admin sandboxes --account ann@example.com --json

Without --url and SANDGATE_URL, commands use the Unix socket of the gateway of SANDGATE_DATA_DIR on this machine.
Exit codes: 0 success, 1 failure, 2 wrong usage.`;

/** `sandgate admin …` and `sandgate-admin …`: the operator's commands. */
function addAdmin(all: Command): void {
  const admin = all
    .command("admin")
    .description("manage the accounts, keys, workers, machines, sandboxes and images of an installation")
    .usage("COMMAND [OPTIONS] [ARGUMENTS]")
    // The options below also apply to the group's commands, at any position.
    .enablePositionalOptions(false)
    .configureHelp({ showGlobalOptions: true })
    .option("--json", "print the API's JSON")
    .option("--url <url>", "the gateway (default: SANDGATE_URL, else the one on this machine)")
    .option("--key-file <file>", "a file with an operator's API key (default: SANDGATE_API_KEY, else the key of this machine's installation)")
    .option(
      "-y, --yes",
      "do not ask; required by suspend, revoke, forget, delete, password, delete-account, images rm, members rm and restore --replace without a terminal",
    )
    .addHelpText("after", adminHelp);
  addAccountCommands(admin);
  addKeyCommands(admin);
  addWorkerCommands(admin);
  addMemberCommands(admin);
  addClusterCommands(admin);
  addSandboxCommands(admin);
  addImageCommands(admin);
  addAuditCommand(admin);
  addBackupCommands(admin);
}

const intro = "Sandboxes from the command line: isolated Linux environments on a Sandgate server.";

const help = `
A SANDBOX is given by its id, its name, or the start of its id. Every command has --help and --json.

First steps:
  sandgate login                         the server's address and an API key from its web page
  sandgate create --name web             create a sandbox
  sandgate exec web -- python3 -V        run a command in it
  sandgate exec -it web                  open a shell in it
  sandgate cp ./app web:/work/app        copy files and folders, both ways
  sandgate rm web                        delete it

Operators manage their server with sandgate admin.

Environment: SANDGATE_URL and SANDGATE_API_KEY take precedence over what login has stored.
Exit codes: 0 success, 1 failure, 2 wrong usage. exec and attach exit with the command's code, or 125.`;

export function program(): Command {
  const all = new Command("sandgate")
    .description(intro)
    .usage("COMMAND [OPTIONS] [ARGUMENTS]")
    .version(version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [COMMAND]", "show the help of a command")
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError("See sandgate COMMAND --help.")
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

/** Adds a command with its parent's settings; unlike `command`, `addCommand` does not pass them on. */
function inherited(one: Command, parent: Command): Command {
  one.copyInheritedSettings(parent);
  for (const below of one.commands) inherited(below, one);
  return one;
}

declare const SANDGATE_VERSION: string | undefined;
export const version = typeof SANDGATE_VERSION === "string" ? SANDGATE_VERSION : "0.0.0";
