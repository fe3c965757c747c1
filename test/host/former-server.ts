/**
 * Makes the exec server of a former version as that version's own set-up does, where there is an archive with a compiler.
 *
 * Arguments: the folder of that version, the folder for the program. Prints its path.
 */
import { join } from "node:path";
import { Terminal } from "../../systemd/base/terminal.ts";
import { createAdministrator } from "../../systemd/setup/administrator.ts";
import { preparedInstance } from "../helpers/prepare.ts";

const [former = ""] = process.argv.slice(2);
const { execServer } = (await import(join(former, "systemd/setup/exec-server.ts"))) as typeof import("../../systemd/setup/exec-server.ts");
const terminal = new Terminal(process.stderr);
console.log((await execServer(await preparedInstance(), createAdministrator(terminal, new AbortController().signal), terminal)) ?? "");
