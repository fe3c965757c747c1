/** Attacks as a user of this machine: programs that run as that user, with nothing of root's, and report what became of them. */
import { join } from "node:path";
import { asAccount } from "../../systemd/base/as-account.ts";
import type { Account } from "../../systemd/base/instance.ts";
import { run } from "../../systemd/base/run.ts";
import { searchPath } from "../../systemd/base/search-path.mjs";
import { preparedInstance } from "./prepare.ts";
import type { Outcome } from "./probes.ts";

const program = `
const { promisify } = require("node:util");
const fs = require("node:fs");
const net = require("node:net");
const { spawnSync } = require("node:child_process");
const { join } = require("node:path");
/** Listens; resolves when somebody could connect. */
const listen = (options) => new Promise((resolve, reject) => net.createServer().on("error", reject).listen(options, () => resolve("listening")));
/** Any four bytes of a process's memory. */
const memoryOf = (pid) => {
  const start = parseInt(fs.readFileSync("/proc/" + pid + "/maps", "utf8"), 16);
  const file = fs.openSync("/proc/" + pid + "/mem", "r");
  const bytes = Buffer.alloc(4);
  fs.readSync(file, bytes, 0, 4, start);
  return bytes.toString("hex");
};
/** Attaches to a process as a debugger does. */
const attach = (pid) => {
  const number = process.arch === "x64" ? 101 : 117;
  const { status } = spawnSync("perl", ["-e", "syscall($ARGV[0], 16, $ARGV[1] + 0, 0, 0) == 0 ? exit 0 : exit $!", number, pid]);
  if (status !== 0) throw Object.assign(new Error("ptrace"), { code: require("node:util").getSystemErrorName(-status) });
  return "attached";
};
const attempt = async ([name, source]) => {
  try {
    return [name, { done: (await eval("(async () => (" + source + "))()")) ?? null }];
  } catch (error) {
    return [name, error.code && error.code.startsWith("E") ? { errno: error.code } : { error: String(error) }];
  }
};
(async () => {
  const attempts = Object.entries(JSON.parse(process.argv[1]));
  const outcomes = [];
  for (const one of attempts) outcomes.push(await attempt(one));
  fs.writeSync(1, JSON.stringify(Object.fromEntries(outcomes)));
  process.exit();
})();
`;

/** Where every account may run it; looked up once. */
let node: Promise<string> | undefined;

/** Evaluates the JavaScript expressions as this user, one after the other in one process. An expression's value is what it achieved. */
export function tryAs<Name extends string>(account: Account, attempts: Record<Name, string>): Promise<Record<Name, Outcome>> {
  return tryBy((argv) => asAccount(account, argv), attempts);
}

/** The same as a user without a name. */
export function tryAsId<Name extends string>(id: number, attempts: Record<Name, string>): Promise<Record<Name, Outcome>> {
  const identity = ["--reuid", String(id), "--regid", String(id), "--clear-groups", "--inh-caps=-all", "--ambient-caps=-all"];
  return tryBy((argv) => ["setpriv", ...identity, "--", ...argv], attempts);
}

async function tryBy<Name extends string>(become: (argv: string[]) => string[], attempts: Record<Name, string>): Promise<Record<Name, Outcome>> {
  node ??= preparedInstance().then(({ paths }) => join(paths.app, "node_modules/.bin/node"));
  const argv = become([await node, "--eval", program, "--", JSON.stringify(attempts)]);
  return JSON.parse(await run(argv, { env: { PATH: searchPath }, cwd: "/" })) as Record<Name, Outcome>;
}
