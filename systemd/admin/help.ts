/** The text of `sandgate-admin help`. */
import { tiers } from "../../shared/schemas/limits.ts";
import { alignColumns } from "../terminal.ts";
import { commands } from "./commands/all.ts";

export function helpText(): string {
  const list = commands.map(({ name, takes, about }) => [`  ${name}${takes && ` ${takes}`}`, about]);
  const options = [
    ["  --tier NAME", `${tiers.join(", ")} (set, set-key)`],
    ["  --requests N", "requests in any minute (set, set-key)"],
    ["  --burst N", "of these, at once (set, set-key)"],
    ["  --sandboxes N", "sandboxes at the same time (set, set-key)"],
    ["  --default-limits", "no numbers of its own: those of the tier (set), or of the account (set-key)"],
    ["  --default-tier", "the tier of the account (set-key)"],
    ["  --operator, --no-operator", "may use these commands, or may not (set)"],
    ["  -y, --yes", "do not ask; needed by suspend, revoke, forget, delete and images rm where there is no terminal"],
    ["  --json", "print the answers of the API"],
    ["  --url URL", "the gateway; SANDGATE_URL, else the one of SANDGATE_DATA_DIR on this machine, by its Unix socket"],
    ["  --key-file FILE", "a file with an operator's API key; else SANDGATE_API_KEY, else the key of this machine's installation"],
    ["  -h, --help", "show this text"],
  ];
  return [
    "Usage: npm run admin -- COMMAND [OPERANDS] [OPTIONS]      (or: sandgate-admin COMMAND …)",
    "",
    "Manages the accounts, keys, workers, sandboxes and images of a running Sandgate.",
    "",
    "Commands (ACCOUNT is an id such as acct_01k9… or an e-mail address):",
    "",
    ...alignColumns([...list, ["  help", "show this text"]]),
    "",
    "Options:",
    "",
    ...alignColumns(options),
    "",
    "Examples:",
    "",
    "  npm run admin -- set ann@example.com --tier pro",
    "  npm run admin -- set ann@example.com --requests 500 --sandboxes 20",
    "  npm run -s admin -- sandboxes --account ann@example.com --json",
    "",
    "Exit codes: 0 done, 1 failed, 2 wrong usage.",
  ].join("\n");
}
