/** `sandgate admin …` and `sandgate-admin …`: the operator's commands. */
import type { Command } from "commander";
import { addAccountCommands } from "./accounts.ts";
import { addImageCommands } from "./images.ts";
import { addKeyCommands } from "./keys.ts";
import { addSandboxCommands } from "./sandboxes.ts";
import { addWorkerCommands } from "./workers.ts";

const help = `
ACCOUNT is an id such as acct_01k9… or an e-mail address. Every command has --help.

Examples:
  sandgate admin set ann@example.com --tier pro
  sandgate admin set ann@example.com --requests 500 --sandboxes 20
  sandgate admin sandboxes --account ann@example.com --json

Without --url and SANDGATE_URL, commands use the Unix socket of the gateway of SANDGATE_DATA_DIR on this machine.
Exit codes: 0 success, 1 failure, 2 wrong usage.`;

/** @param all the command line to which the group is added */
export function addAdmin(all: Command): void {
  const admin = all
    .command("admin")
    .description("manage the accounts, keys, workers, sandboxes and images of an installation")
    .usage("COMMAND [OPTIONS] [ARGUMENTS]")
    // The options below also apply to the group's commands, at any position.
    .enablePositionalOptions(false)
    .configureHelp({ showGlobalOptions: true })
    .option("--json", "print the API's JSON")
    .option("--url <url>", "the gateway (default: SANDGATE_URL, else the one on this machine)")
    .option("--key-file <file>", "a file with an operator's API key (default: SANDGATE_API_KEY, else the key of this machine's installation)")
    .option("-y, --yes", "do not ask; required by suspend, revoke, forget, delete and images rm without a terminal")
    .addHelpText("after", help);
  addAccountCommands(admin);
  addKeyCommands(admin);
  addWorkerCommands(admin);
  addSandboxCommands(admin);
  addImageCommands(admin);
}
