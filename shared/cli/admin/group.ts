/** `sandgate admin …`, which is also `sandgate-admin …`: the commands of the operator. */
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

Without --url and SANDGATE_URL, it is the gateway of SANDGATE_DATA_DIR on this machine that is asked, by its Unix socket.
Exit codes: 0 done, 1 failed, 2 wrong usage.`;

/** @param all the command line that gets the group */
export function addAdmin(all: Command): void {
  const admin = all
    .command("admin")
    .description("manage the accounts, keys, workers, sandboxes and images of an installation")
    .usage("COMMAND [OPTIONS] [ARGUMENTS]")
    // The options here count for its commands as well, wherever they stand.
    .enablePositionalOptions(false)
    .configureHelp({ showGlobalOptions: true })
    .option("--json", "print the answers of the API")
    .option("--url <url>", "the gateway (else SANDGATE_URL, else the one on this machine)")
    .option("--key-file <file>", "a file with an operator's API key (else SANDGATE_API_KEY, else the key of this machine's installation)")
    .option("-y, --yes", "do not ask; needed by suspend, revoke, forget, delete and images rm where there is no terminal")
    .addHelpText("after", help);
  addAccountCommands(admin);
  addKeyCommands(admin);
  addWorkerCommands(admin);
  addSandboxCommands(admin);
  addImageCommands(admin);
}
