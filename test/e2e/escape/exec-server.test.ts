/** The process in a sandbox that starts its commands, and the socket over which the worker tells it. */
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, probeOne } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
const id = await sandboxes.make();

const find = `
def server(name=".sandgate-exec"):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/comm").read().strip() == name: return int(pid)
        except OSError: pass
    raise LookupError(name)
`;

const attacks: Record<string, string> = {
  "opens the worker's socket through /proc": 'open(f"/proc/{server()}/fd/0", "r+b", 0)',
  "copies the worker's socket out of the server": 'call(438, call("pidfd_open", server(), 0), 0, 0)',
  "looks at what the server has open": 'os.readlink(f"/proc/{server()}/fd/0")',
  "reads the server's memory": 'open(f"/proc/{server()}/mem", "rb")',
  "traces the server": 'call("ptrace", 16, server(), 0, 0)',
  "traces a keeper": 'call("ptrace", 16, server(".sandgate-keep"), 0, 0)',
  "overwrites the server's program": 'open("/run/.sandgate-exec", "r+b")',
};
for (const [name, script] of Object.entries(attacks)) {
  test(name, async () => expectRefused(await probeOne(api, id, `${find}result = ${script}`), "EPERM", "EACCES", "EROFS", "ETXTBSY"));
}
